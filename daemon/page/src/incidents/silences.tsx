// SPDX-License-Identifier: Apache-2.0
// Silences hold back alerts for a time. An incident offers one for its like; the list of jobs shows
// those that last. Only operators begin and end them.
import { useState } from "preact/hooks";
import { useAddress } from "../address";
import { act, silencesPath } from "../api";
import { plural } from "../format";
import { useLive } from "../live";
import type { Incident, ListSilencesResponse, Silence } from "../messages";
import { Time } from "../parts";
import { useMayAct } from "../session";

const kMostCharacters = 120; // of the 500 bytes that a comment may have
const lengths: [value: string, words: string][] = [
  ["1h", "1 hour"],
  ["8h", "8 hours"],
  ["24h", "1 day"],
  ["168h", "1 week"],
];

// Calls the daemon; the page's own stream of changes shows the result.
export function useAction(): [
  problem: string,
  act: (path: string, of: Record<string, string>) => Promise<boolean>,
] {
  const [problem, setProblem] = useState("");
  const tryAct = async (path: string, of: Record<string, string>): Promise<boolean> => {
    try {
      await act(path, of);
      setProblem("");
      return true;
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      return false;
    }
  };
  return [problem, tryAct];
}

export function Problem({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}

// "job llm, host node-17"
export function inWords(silence: Silence): string {
  return [
    ["tenant", silence.tenant],
    ["job", silence.job],
    ["host", silence.host],
    ["cause", silence.cause],
  ]
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

// Why no alert reports the incident.
export function Silenced({ silence }: { silence?: Silence | undefined }) {
  if (silence === undefined) return null;
  return (
    <p>
      Alerts silenced until <Time at={silence.until} /> by {silence.who} ({inWords(silence)})
      {silence.comment !== "" && `: ${silence.comment}`}
    </p>
  );
}

// A silence for incidents like this one.
export function SilenceLikeThis({ incident }: { incident: Incident }) {
  const mayAct = useMayAct();
  const [problem, tryAct] = useAction();
  const { query } = useAddress();
  const root = incident.verdicts[0];
  const host = root?.culprits[0]?.host ?? "";
  const [of, setOf] = useState({ job: incident.job, host: "", cause: "", for: "1h", comment: "" });
  if (!mayAct || incident.silenced !== undefined || incident.confirmed_at === undefined)
    return null;
  const begin = async (event: Event): Promise<void> => {
    event.preventDefault();
    await tryAct("silence", { tenant: incident.tenant, ...of });
  };
  const choice = (name: "job" | "host" | "cause", value: string) => (
    <label>
      <input
        type="checkbox"
        checked={of[name] !== ""}
        onChange={(event) => setOf({ ...of, [name]: event.currentTarget.checked ? value : "" })}
      />{" "}
      {name} {value}
    </label>
  );
  return (
    <details class="silence" open={query.get("do") === "silence"}>
      <summary>Silence alerts like this</summary>
      <form class="filters" onSubmit={(event) => void begin(event)}>
        {choice("job", incident.job)}
        {host !== "" && choice("host", host)}
        {root !== undefined && choice("cause", root.cause)}
        <label>
          For{" "}
          <select
            value={of.for}
            onChange={(event) => setOf({ ...of, for: event.currentTarget.value })}
          >
            {lengths.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label class="note">
          Why{" "}
          <input
            value={of.comment}
            maxLength={kMostCharacters}
            onInput={(event) => setOf({ ...of, comment: event.currentTarget.value })}
          />
        </label>
        <button type="submit">Silence</button>
      </form>
      <Problem text={problem} />
    </details>
  );
}

export function Silences() {
  const mayAct = useMayAct();
  const live = useLive<ListSilencesResponse>(silencesPath);
  const [problem, tryAct] = useAction();
  const silences = live.value?.silences ?? [];
  if (silences.length === 0) return null;
  return (
    <details class="silence">
      <summary>
        {plural(silences.length, "silence")} {silences.length === 1 ? "holds" : "hold"} back alerts
      </summary>
      <ul>
        {silences.map((silence) => (
          <li key={silence.id}>
            {inWords(silence)}, until <Time at={silence.until} />, by {silence.who}
            {silence.comment !== "" && `: ${silence.comment}`};{" "}
            {plural(silence.incidents, "incident")} so far
            {silence.alerted_incidents > 0 &&
              ` (${silence.alerted_incidents} alerted before it began)`}{" "}
            {mayAct && (
              <button type="button" onClick={() => void tryAct("silence/end", { id: silence.id })}>
                End
              </button>
            )}
          </li>
        ))}
      </ul>
      <Problem text={problem} />
    </details>
  );
}
