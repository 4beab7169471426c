// SPDX-License-Identifier: Apache-2.0
// Compares two incidents, fact by fact.
import { incidentPath } from "./api";
import { call, communicator, count, seconds } from "./format";
import { useLive } from "./live";
import type { Incident, Verdict } from "./messages";
import { type Column, IncidentLink, JobLink, Table, Time, Waiting } from "./parts";
import { shortenRanks } from "./ranks";
import { culpritHosts, culpritRanks, type RankSet, waitingRanks } from "./totals";

type Fact = [string, (incident: Incident) => string];

// A fact of the root cause.
function ofRoot(fact: (verdict: Verdict) => string): (incident: Incident) => string {
  return ({ verdicts: [root] }) => (root === undefined ? "" : fact(root));
}

// "0-7,12 (9)"
function inShort({ total, ranks }: RankSet): string {
  return total === 0 ? "" : `${shortenRanks(ranks, 12)} (${count(total)})`;
}

const facts: Fact[] = [
  ["State", (one) => one.state],
  ["Cause", (one) => one.verdicts[0]?.cause ?? ""],
  ["Certainty", (one) => one.verdicts[0]?.certainty ?? ""],
  ["Culprit ranks", ofRoot((verdict) => inShort(culpritRanks(verdict)))],
  ["Culprit hosts", ofRoot((verdict) => culpritHosts(verdict, 8))],
  [
    "GPUs",
    (one) =>
      [
        ...new Set(
          one.verdicts[0]?.culprits.map((who) => who.device).filter((device) => device >= 0) ?? [],
        ),
      ].join(", "),
  ],
  [
    "Code",
    (one) => [...new Set(one.verdicts[0]?.culprits.map((who) => who.code) ?? [])].join(", "),
  ],
  ["Waiting", ofRoot((verdict) => inShort(waitingRanks(verdict)))],
  ["Communicator", (one) => communicator(one.verdicts[0]?.communicator)],
  ["Call", (one) => call(one.verdicts[0]?.call)],
  [
    "Position",
    (one) => (one.verdicts[0]?.call === undefined ? "" : count(one.verdicts[0].call.position)),
  ],
  ["Differs in", (one) => one.verdicts[0]?.mismatched_fields.join(", ") ?? ""],
  ["Waited", (one) => seconds(one.verdicts[0]?.waited_seconds ?? 0)],
  ["Advice", (one) => one.verdicts[0]?.advice.map((advice) => advice.id).join(", ") ?? ""],
  [
    "Stacks of the culprits",
    (one) =>
      [
        ...new Set(
          one.stacks
            .filter((stack) => stack.culprit)
            .flatMap((stack) => {
              const python = stack.threads[0]?.frames.find((frame) => frame.python);
              return python === undefined
                ? []
                : [`${python.function} ${python.file}:${python.line}`];
            }),
        ),
      ].join(", "),
  ],
];

export function Compare({ ids }: { ids: [string, string] }) {
  const first = useLive<Incident>(incidentPath(ids[0]));
  const second = useLive<Incident>(incidentPath(ids[1]));
  if (first.value === undefined)
    return (
      <main>
        <Waiting live={first} what={ids[0]} />
      </main>
    );
  if (second.value === undefined)
    return (
      <main>
        <Waiting live={second} what={ids[1]} />
      </main>
    );
  const both: [Incident, Incident] = [first.value, second.value];
  return (
    <main>
      <h1>Two incidents</h1>
      <Table
        label="comparison"
        columns={[[""], ...both.map((one): Column => [<IncidentLink id={one.id} />])]}
      >
        <tr>
          <th scope="row">Job</th>
          {both.map((one) => (
            <td key={one.id}>
              <JobLink job={one.job} tenant={one.tenant} />
            </td>
          ))}
        </tr>
        <tr>
          <th scope="row">Opened</th>
          {both.map((one) => (
            <td key={one.id}>
              <Time at={one.opened_at} />
            </td>
          ))}
        </tr>
        {facts.map(([name, of]) => {
          const [a, b] = [of(both[0]), of(both[1])];
          if (a === "" && b === "") return null;
          return (
            <tr key={name} class={a === b ? "" : "differs"}>
              <th scope="row">
                {name}
                {a === b ? <span class="soft"> (the same)</span> : ""}
              </th>
              <td>{a}</td>
              <td>{b}</td>
            </tr>
          );
        })}
        <tr>
          <th scope="row">Summary</th>
          {both.map((one) => (
            <td key={one.id} class="wide">
              {one.verdicts[0]?.summary}
            </td>
          ))}
        </tr>
      
      </Table>
    </main>
  );
}
