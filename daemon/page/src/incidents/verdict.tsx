// SPDX-License-Identifier: Apache-2.0
// One verdict of an incident: culprits and waiting ranks side by side, histories, advice, evidence.
import type { ComponentChildren } from "preact";
import type { JobAddress } from "../api";
import { call, count, culpritParts, graph, seconds, step } from "../format";
import { CommunicatorWords, CulpritHosts, HostLink, RankLink, RankLinks, Sentence } from "../links";
import type { Call, Culprit, Incident, Verdict } from "../messages";
import { Facts, JobLink, Table } from "../parts";
import { shortenRanks } from "../ranks";
import { culpritRanks, type RankSet, waitingRanks } from "../totals";
import { stackTop } from "./stacks";
import { Waits } from "./waits";
import { Walk } from "./walk";

function CallCard({
  title,
  who,
  position,
  made,
  code,
  differs,
}: {
  title: string;
  who: ComponentChildren;
  position: string;
  made: Call | undefined;
  code: string;
  differs: string[];
}) {
  const mark = (field: string, value: string) =>
    differs.includes(field) ? <mark>{value}</mark> : value;
  return (
    <div class="card">
      <h3>{title}</h3>
      <p>{who}</p>
      {made !== undefined && made.operation !== "" && (
        <Facts
          facts={[
            ["Call", mark("operation", made.operation)],
            ["Position", `#${count(made.position)}`],
            ["Data type", made.dtype === "" ? "" : mark("dtype", made.dtype)],
            [
              made.dtype === "" ? "Bytes" : "Count",
              made.dtype === "" && made.count === 0 ? "" : mark("count", count(made.count)),
            ],
            ["For PyTorch", made.logical],
            ["Shape", made.shape],
            ["CUDA graph", graph(made.graph)],
            ["Reduction", made.reduction === "" ? "" : mark("reduction", made.reduction)],
            ["Root", made.root < 0 ? "" : mark("root", String(made.root))],
          ]}
        />
      )}
      {code !== "" && <p class="code">{code}</p>}
      {position !== "" && (
        <p>
          Now in <span class="code">{position}</span>
        </p>
      )}
    </div>
  );
}

const kCulpritsNamed = 6;

function jobOf(incident: Incident): JobAddress {
  return { job: incident.job, tenant: incident.tenant, attempt: String(incident.attempt) };
}

function rankWord(set: RankSet): string {
  return set.total === 1 ? "rank " : "ranks ";
}

// "rank 3 (rank 1 of job engine)": of a rank of another job than the incident's.
function RankOfOtherJob({ tenant, one }: { tenant: string; one: Culprit }) {
  const theirs = { job: one.job, tenant, attempt: String(one.job_attempt ?? 0) };
  return (
    <>
      rank {one.rank} (
      {one.job_rank !== undefined && (
        <>
          rank <RankLink job={theirs} rank={one.job_rank} />{" "}
        </>
      )}
      of job <JobLink job={one.job} tenant={tenant} />)
    </>
  );
}

// "rank 3, node-17, pid 41": the rank and the host are links.
function CulpritWords({ job, one }: { job: JobAddress; one: Culprit }) {
  const rest = culpritParts(one).slice(one.host === "" ? 1 : 2);
  return (
    <>
      {one.job !== "" ? (
        <RankOfOtherJob tenant={job.tenant} one={one} />
      ) : (
        <>
          {one.rank < 0 ? "a process" : "rank "}
          <RankLink job={job} rank={one.rank} />
        </>
      )}
      {one.host !== "" && ", "}
      <HostLink host={one.host} />
      {rest.map((part) => `, ${part}`)}
    </>
  );
}

// The first culprits in full, and the ranks of all if there are more.
function CulpritsWords({ job, verdict }: { job: JobAddress; verdict: Verdict }) {
  const all = culpritRanks(verdict);
  return (
    <>
      {verdict.culprits.slice(0, kCulpritsNamed).map((one, index) => (
        <span key={index}>
          {index > 0 && "; "}
          <CulpritWords job={job} one={one} />
        </span>
      ))}
      {all.total > kCulpritsNamed && (
        <>
          ; all: {rankWord(all)}
          <RankLinks job={job} ranks={shortenRanks(all.ranks, 12)} /> on{" "}
          <CulpritHosts verdict={verdict} most={3} />
        </>
      )}
    </>
  );
}

function SideBySide({ verdict, incident }: { verdict: Verdict; incident: Incident }) {
  const first = verdict.culprits[0];
  const job = jobOf(incident);
  const culprits = culpritRanks(verdict).total;
  const waiting = waitingRanks(verdict);
  const waited = verdict.waited_seconds > 0 ? `, for ${seconds(verdict.waited_seconds)}` : "";
  return (
    <div class="cards">
      <CallCard
        title={culprits === 1 ? "Culprit" : `Culprits (${count(culprits)})`}
        who={<CulpritsWords job={job} verdict={verdict} />}
        position={first === undefined ? "" : stackTop(incident, first.rank)}
        made={first?.call}
        code={first?.code ?? ""}
        differs={verdict.mismatched_fields}
      />
      <CallCard
        title={waiting.total === 0 ? "The others" : `Waiting (${count(waiting.total)})`}
        who={
          waiting.total > 0 && (
            <>
              {rankWord(waiting)}
              <RankLinks job={job} ranks={shortenRanks(waiting.ranks, 12)} />
              {waited}
            </>
          )
        }
        position=""
        made={verdict.call}
        code={verdict.call?.code ?? ""}
        differs={verdict.mismatched_fields}
      />
    </div>
  );
}

function Histories({ verdict }: { verdict: Verdict }) {
  if (verdict.histories.length === 0) return null;
  const cell = (made: Call | undefined) =>
    made === undefined || made.operation === "" ? (
      <td class="soft">(no such call)</td>
    ) : (
      <td>
        #{count(made.position)} {call(made)}
        {made.code !== "" && <div class="code">{made.code}</div>}
      </td>
    );
  return (
    <>
      <h3>The two histories, call by call</h3>
      <Table label="histories" kind="histories" columns={[[""], ["The others"], ["The culprits"]]}>
        {verdict.histories.map((line, index) => (
          <tr key={index} class={line.differs ? "differs" : ""}>
            <td>{line.differs ? "≠" : "="}</td>
            {cell(line.others)}
            {cell(line.culprits)}
          </tr>
        ))}
      </Table>
    </>
  );
}

function List({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {lines.map((line, index) => (
          <li key={index}>{line}</li>
        ))}
      </ul>
    </>
  );
}

export function VerdictView({
  verdict,
  first,
  incident,
}: {
  verdict: Verdict;
  first: boolean;
  incident: Incident;
}) {
  return (
    <>
      {!first && (
        <h3 class="also">
          {verdict.is_consequence ? "A consequence: " : "Also found: "}
          <Sentence job={jobOf(incident)} text={verdict.summary} />
        </h3>
      )}
      <Facts
        facts={[
          ["Cause", verdict.cause],
          ["Certainty", verdict.certainty],
          [
            "Communicator",
            verdict.communicator !== undefined && (
              <CommunicatorWords job={jobOf(incident)} of={verdict.communicator} />
            ),
          ],
          [
            "Call",
            verdict.call !== undefined && verdict.call.operation !== ""
              ? `#${count(verdict.call.position)} ${call(verdict.call)}`
              : "",
          ],
          ["Differs in", verdict.mismatched_fields.join(", ")],
          ["How", verdict.divergence],
          ["Waited", verdict.waited_seconds > 0 ? seconds(verdict.waited_seconds) : ""],
          ["Step", step(verdict)],
        ]}
      />
      <SideBySide verdict={verdict} incident={incident} />
      <Histories verdict={verdict} />
      {verdict.network !== undefined && <Walk job={jobOf(incident)} walk={verdict.network} />}
      {verdict.chain.length > 0 && (
        <>
          <h3>Which rank waits for which</h3>
          <Waits job={jobOf(incident)} chain={verdict.chain} total={verdict.chain_total} />
        </>
      )}
      {verdict.advice.length > 0 && (
        <>
          <h3>What to do</h3>
          <ul class="advice">
            {verdict.advice.map((advice) => (
              <li key={advice.id}>
                <b>{advice.id}</b> {advice.text}
              </li>
            ))}
          </ul>
        </>
      )}
      <List title="Evidence" lines={verdict.evidence} />
      <List title="Missing evidence" lines={verdict.missing_evidence} />
    </>
  );
}
