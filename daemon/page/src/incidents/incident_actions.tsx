// SPDX-License-Identifier: Apache-2.0
// What people add to an incident: who takes care of it, and notes. Only operators may add.
import { useEffect, useRef, useState } from "preact/hooks";
import { useAddress } from "../address";
import type { Incident } from "../messages";
import { Section, Time } from "../parts";
import { useMayAct } from "../session";
import { Problem, Silenced, SilenceLikeThis, useAction } from "./silences";

const kMostNotes = 20;
const kMostCharacters = 500; // of the 2,000 bytes that a note may have

// Who takes care of the hang, beside its sentence. A link of an alert leads to the button (?do=acknowledge).
export function Taken({ incident }: { incident: Incident }) {
  const mayAct = useMayAct();
  const [problem, act] = useAction();
  const button = useRef<HTMLButtonElement>(null);
  const { query } = useAddress();
  const isWanted = query.get("do") === "acknowledge";
  useEffect(() => {
    if (isWanted) button.current?.focus();
  }, [isWanted, mayAct]);
  const id = incident.id;
  const taken = incident.acknowledged;
  if (!mayAct && taken === undefined) return null;
  const change: Record<string, string> = taken === undefined ? { id } : { id, take_back: "1" };
  return (
    <div class="taken actions">
      {taken !== undefined && (
        <span>
          Acknowledged by {taken.who}, <Time at={taken.at} />
        </span>
      )}
      {mayAct && (
        <button type="button" ref={button} onClick={() => void act("incident/acknowledge", change)}>
          {taken === undefined ? "Acknowledge" : "Take back"}
        </button>
      )}
      <Problem text={problem} />
    </div>
  );
}

export function PeoplesWords({ incident }: { incident: Incident }) {
  const mayAct = useMayAct();
  const [text, setText] = useState("");
  const [problem, act] = useAction();
  const id = incident.id;
  const isEmpty = incident.notes.length === 0 && !incident.silenced;
  if (!mayAct && isEmpty) return null;
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await act("incident/note", { id, text })) setText("");
  };
  return (
    <Section title="Notes">
      <Silenced silence={incident.silenced} />
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
          <button type="submit">Add</button>
        </form>
      )}
      <SilenceLikeThis incident={incident} />
      <Problem text={problem} />
    </Section>
  );
}
