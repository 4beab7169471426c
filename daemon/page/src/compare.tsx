// SPDX-License-Identifier: Apache-2.0
// Two incidents, fact by fact.
import { incidentPath } from "./api";
import { call, communicator, count, seconds } from "./format";
import { useLive } from "./live";
import type { Incident } from "./messages";
import { IncidentLink, JobLink, Time, Waiting } from "./parts";
import { formatRanks } from "./ranks";

type Fact = [string, (incident: Incident) => string];

const facts: Fact[] = [
  ["state", (one) => one.state],
  ["cause", (one) => one.verdicts[0]?.cause ?? ""],
  ["certainty", (one) => one.verdicts[0]?.certainty ?? ""],
  ["culprit ranks", (one) => formatRanks(one.verdicts[0]?.culprits.map((who) => who.rank) ?? [], 12)],
  ["culprit hosts", (one) => [...new Set(one.verdicts[0]?.culprits.map((who) => who.host) ?? [])].join(", ")],
  ["GPUs", (one) => [...new Set(one.verdicts[0]?.culprits.map((who) => who.device).filter((device) => device >= 0) ?? [])].join(", ")],
  ["code", (one) => [...new Set(one.verdicts[0]?.culprits.map((who) => who.code) ?? [])].join(", ")],
  ["waiting", (one) => formatRanks(one.verdicts[0]?.waiting_ranks ?? [], 12)],
  ["communicator", (one) => communicator(one.verdicts[0]?.communicator)],
  ["call", (one) => call(one.verdicts[0]?.call)],
  ["position", (one) => one.verdicts[0]?.call === undefined ? "" : count(one.verdicts[0].call.position)],
  ["differs in", (one) => one.verdicts[0]?.mismatched_fields.join(", ") ?? ""],
  ["waited", (one) => seconds(one.verdicts[0]?.waited_seconds ?? 0)],
  ["advice", (one) => one.verdicts[0]?.advice.map((advice) => advice.id).join(", ") ?? ""],
  ["stacks of the culprits", (one) => [...new Set(one.stacks.filter((stack) => stack.culprit).flatMap((stack) => {
    const python = stack.threads[0]?.frames.find((frame) => frame.python);
    return python === undefined ? [] : [`${python.function} ${python.file}:${python.line}`];
  }))].join(", ")],
];

export function Compare({ ids }: { ids: [string, string] }) {
  const first = useLive<Incident>(incidentPath(ids[0]));
  const second = useLive<Incident>(incidentPath(ids[1]));
  if (first.value === undefined) return <main><Waiting live={first} what={ids[0]} /></main>;
  if (second.value === undefined) return <main><Waiting live={second} what={ids[1]} /></main>;
  const both: [Incident, Incident] = [first.value, second.value];
  return (
    <main>
      <h1>Two incidents</h1>
      <div class="scroll" tabIndex={0} role="region" aria-label="comparison"><table>
        <thead><tr><th></th>{both.map((one) => <th key={one.id}><IncidentLink id={one.id} /></th>)}</tr></thead>
        <tbody>
          <tr><th scope="row">job</th>{both.map((one) => <td key={one.id}><JobLink job={one.job} /></td>)}</tr>
          <tr><th scope="row">opened</th>{both.map((one) => <td key={one.id}><Time at={one.opened_at} /></td>)}</tr>
          {facts.map(([name, of]) => {
            const [a, b] = [of(both[0]), of(both[1])];
            if (a === "" && b === "") return null;
            return <tr key={name} class={a === b ? "" : "differs"}><th scope="row">{name}{a === b ? <span class="soft"> (the same)</span> : ""}</th><td>{a}</td><td>{b}</td></tr>;
          })}
          <tr><th scope="row">summary</th>{both.map((one) => <td key={one.id} class="wide">{one.verdicts[0]?.summary}</td>)}</tr>
        </tbody>
      </table></div>
    </main>
  );
}
