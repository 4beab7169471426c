// SPDX-License-Identifier: Apache-2.0
// What people add to an incident: notes, and who takes care of it. Only operators may add.
import { useState } from "preact/hooks";
import { actOnIncident } from "./api";
import type { Incident } from "./messages";
import { Section, Time } from "./parts";
import { useMayAct } from "./session";

const kMostNotes = 20;
const kMostCharacters = 500; // of the 2,000 bytes that a note may have

// Calls the daemon; the page's own stream of changes shows the result.
function useAction(): [problem: string, act: (path: string, of: Record<string, string>) => Promise<boolean>] {
  const [problem, setProblem] = useState("");
  const act = async (path: string, of: Record<string, string>): Promise<boolean> => {
    try {
      await actOnIncident(path, of);
      setProblem("");
      return true;
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      return false;
    }
  };
  return [problem, act];
}

export function PeoplesWords({ incident }: { incident: Incident }) {
  const mayAct = useMayAct();
  const [text, setText] = useState("");
  const [problem, act] = useAction();
  const id = incident.id;
  const taken = incident.acknowledged;
  if (!mayAct && taken === undefined && incident.notes.length === 0) return null;
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await act("note", { id, text })) setText("");
  };
  return (
    <Section title="Notes">
      <p class="actions">
        {taken !== undefined && (
          <span>
            Acknowledged by {taken.who}, <Time at={taken.at} />
          </span>
        )}
        {mayAct && (
          <button
            onClick={() =>
              void act("acknowledge", taken === undefined ? { id } : { id, take_back: "1" })
            }
          >
            {taken === undefined ? "Acknowledge" : "Take back"}
          </button>
        )}
      </p>
      {incident.notes.length > 0 && (
        <ul>
          {incident.notes.map((note, index) => (
            <li key={index}>
              {note.text}{" "}
              <span class="soft">
                {note.who}, <Time at={note.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {mayAct && incident.notes.length < kMostNotes && (
        <form class="filters" onSubmit={(event) => void add(event)}>
          <label class="note">
            Note{" "}
            <input
              value={text}
              maxLength={kMostCharacters}
              required
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <button>Add</button>
        </form>
      )}
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </Section>
  );
}
