// SPDX-License-Identifier: Apache-2.0
// Compares two incidents, fact by fact.
import type { ComponentChildren } from "preact";
import { incidentPath, type JobAddress } from "../api";
import { call, communicator, count, seconds } from "../format";
import { CommunicatorWords, CulpritHosts, RankLinks, Sentence } from "../links";
import { useLive } from "../live";
import type { Incident, Verdict } from "../messages";
import { type Column, IncidentLink, JobLink, Section, Table, Time, Waiting } from "../parts";
import { shortenRanks } from "../ranks";
import { culpritHosts, culpritRanks, type RankSet, waitingRanks } from "../totals";
import { Icicle } from "./icicle";
import { Stack } from "./stacks";

const kMostStacks = 8;

// A name, the value in words, and how to show it, if not as these words.
type Fact = [
  name: string,
  words: (incident: Incident) => string,
  show?: (incident: Incident) => ComponentChildren,
];

function jobOf(incident: Incident): JobAddress {
  return { job: incident.job, tenant: incident.tenant, attempt: String(incident.attempt) };
}

// The links to the ranks in words like "0-7,12 (9)".
function ranksIn(set: (verdict: Verdict) => RankSet): Fact[2] {
  return (one) => {
    const [root] = one.verdicts;
    if (root === undefined || set(root).total === 0) return "";
    return (
      <>
        <RankLinks job={jobOf(one)} ranks={shortenRanks(set(root).ranks, 12)} />
        {set(root).total > 1 && ` (${count(set(root).total)})`}
      </>
    );
  };
}

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
  ["Culprit ranks", ofRoot((verdict) => inShort(culpritRanks(verdict))), ranksIn(culpritRanks)],
  [
    "Culprit hosts",
    ofRoot((verdict) => culpritHosts(verdict, 8)),
    ({ verdicts: [root] }) => root !== undefined && <CulpritHosts verdict={root} most={8} />,
  ],
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
  ["Waiting", ofRoot((verdict) => inShort(waitingRanks(verdict))), ranksIn(waitingRanks)],
  [
    "Communicator",
    (one) => communicator(one.verdicts[0]?.communicator),
    (one) => <CommunicatorWords job={jobOf(one)} of={one.verdicts[0]?.communicator} />,
  ],
  ["Call", (one) => call(one.verdicts[0]?.call)],
  [
    "Position",
    (one) =>
      one.verdicts[0]?.call === undefined ? "" : `#${count(one.verdicts[0].call.position)}`,
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

// The merged stacks, and those of the first culprits, each in full.
function StacksOf({ incident }: { incident: Incident }) {
  const job = jobOf(incident);
  const tree = incident.stack_tree;
  const culprits = incident.stacks.filter((stack) => stack.culprit);
  if (culprits.length === 0 && (tree?.nodes.length ?? 0) <= 1)
    return <p class="soft">No stacks.</p>;
  return (
    <>
      {tree !== undefined && tree.nodes.length > 1 && <Icicle job={job} tree={tree} />}
      {culprits.slice(0, kMostStacks).map((stack, index) => (
        <Stack key={index} stack={stack} job={job} isOpen={index === 0} />
      ))}
      {culprits.length > kMostStacks && (
        <p class="soft">{count(culprits.length - kMostStacks)} more on the page of the incident.</p>
      )}
    </>
  );
}

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
        {facts.map(([name, of, show = of]) => {
          const [a, b] = [of(both[0]), of(both[1])];
          if (a === "" && b === "") return null;
          return (
            <tr key={name} class={a === b ? "" : "differs"}>
              <th scope="row">
                {name}
                {a === b ? <span class="soft"> (the same)</span> : ""}
              </th>
              <td>{show(both[0])}</td>
              <td>{show(both[1])}</td>
            </tr>
          );
        })}
        <tr>
          <th scope="row">Summary</th>
          {both.map((one) => (
            <td key={one.id} class="wide">
              <Sentence job={jobOf(one)} text={one.verdicts[0]?.summary ?? ""} />
            </td>
          ))}
        </tr>
      </Table>
      <Section title="Stacks">
        <div class="both">
          {both.map((one) => (
            <div key={one.id} role="region" aria-label={`stacks of ${one.id}`}>
              <h3>
                <IncidentLink id={one.id} />
              </h3>
              <StacksOf incident={one} />
            </div>
          ))}
        </div>
      </Section>
    </main>
  );
}
