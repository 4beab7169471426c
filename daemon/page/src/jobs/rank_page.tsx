// SPDX-License-Identifier: Apache-2.0
// One rank: who it is and where, what it does, its communicators, its last calls, its stacks in the
// last incident and now, and the incidents that it was a culprit of.
import { useAddress } from "../address";
import { callsPath, incidentPath, incidentsPath, type JobAddress, processesPath } from "../api";
import { bytes, call, communicator, count, lastCall, plural, seconds } from "../format";
import { IncidentTable } from "../incidents/incident_table";
import { Stack, StacksNow } from "../incidents/stacks";
import { CommunicatorLink, HostLink, jobAddress, rankAddress } from "../links";
import { useLive } from "../live";
import type {
  CallsResponse,
  CommunicatorCalls,
  Incident,
  ListIncidentsResponse,
  ProcessesResponse,
  ProcessStatus,
} from "../messages";
import { type Column, Facts, IncidentLink, Section, Stale, Table, Time, Waiting } from "../parts";
import { hasRank } from "../ranks";
import { Timeline } from "../timeline/timeline";
import { culpritRanks } from "../totals";
import { mismatchOf } from "./mismatch";
import { life } from "./process_words";
import { describeState, severity } from "./states";

const kMostIncidents = 100;
const kCallsRead = 30;

function waitingCall(comm: CommunicatorCalls) {
  return comm.calls.find((span) => span.waits);
}

// What the rank does, in one sentence.
function doing(process: ProcessStatus | undefined, calls: CallsResponse): string {
  if (process !== undefined && process.liveness !== "alive")
    return `Its process: ${life(process)}.`;
  const list = calls.ranks[0]?.communicators ?? [];
  const now = Date.parse(calls.now) / 1000;
  for (const comm of list) {
    const span = waitingCall(comm);
    if (span !== undefined)
      return (
        `Waits for others in ${call(span.call)} #${count(span.call.position)} on ` +
        `${communicator(comm.communicator)}, for ${seconds(now - span.entered_seconds)}.`
      );
  }
  const behind = list.find((comm) => comm.state >= "1" && comm.state <= "9");
  if (behind !== undefined) {
    const call_now =
      process === undefined || process.doing === ""
        ? "is in no call"
        : `is in ${process.doing} for ${seconds(process.doing_seconds)}`;
    return (
      `Is ${describeState(behind.state).replace(", not waiting", "")} on ` +
      `${communicator(behind.communicator)}; it ${call_now}.`
    );
  }
  if (process !== undefined && process.doing !== "")
    return `Is in ${process.doing} for ${seconds(process.doing_seconds)}.`;
  return "Does not wait.";
}

function code(text: string) {
  return text === "" ? "" : <span class="code">{text}</span>;
}

function Who({ process }: { process: ProcessStatus }) {
  return (
    <Facts
      facts={[
        ["Host", <HostLink host={process.host} />],
        ["Node", process.node === process.host ? "" : process.node],
        ["Pod", process.pod],
        ["Container", process.container],
        ["PID", process.pid],
        ["PID in its container", process.inner_pid > 0 && process.inner_pid],
        ["GPU", process.device >= 0 && String(process.device)],
        ["GPU's id", process.gpu_uuid],
        ["Process", life(process)],
        ["Kernel function", code(process.wait_channel)],
        ["CPU time", seconds(process.cpu_seconds)],
        ["Memory", process.memory_bytes > 0 && bytes(process.memory_bytes)],
        ["Command", code(process.command)],
        ["Standard output", code(process.stdout_to)],
        ["Standard error", code(process.stderr_to)],
      ]}
    />
  );
}

// The variables that change how NCCL behaves; the agent sends no others.
function Environment({ text }: { text: string }) {
  if (text === "")
    return (
      <p class="soft">No variable of NCCL, CUDA or torch.distributed is set, or none is known.</p>
    );
  return (
    <pre class="environment" tabIndex={0}>
      {text.split(/ (?=[A-Z][A-Z0-9_]*=)/).join("\n")}
    </pre>
  );
}

const columns: Column[] = [
  ["Communicator"],
  ["Rank in it", "number"],
  ["State"],
  ["Last call", "number"],
  ["Finished on the GPU", "number"],
  ["Newest call"],
  ["Code"],
];

function Communicators({ job, list }: { job: JobAddress; list: CommunicatorCalls[] }) {
  if (list.length === 0) return <p class="soft">It is in no communicator.</p>;
  const worst_first = [...list].sort((a, b) => severity(b.state) - severity(a.state));
  return (
    <Table label="communicators" kind="stacked" columns={columns}>
      {worst_first.map((comm) => {
        const newest = waitingCall(comm) ?? comm.calls[comm.calls.length - 1];
        return (
          <tr key={comm.communicator.id} class={comm.state === "w" ? "waits" : ""}>
            <th scope="row">
              <CommunicatorLink job={job} id={comm.communicator.id}>
                {comm.communicator.name || comm.communicator.id}
              </CommunicatorLink>{" "}
              <span class="soft">{plural(comm.communicator.size, "rank")}</span>
            </th>
            <td class="number" data-label="rank in it">
              {comm.rank_in_communicator}
            </td>
            <td>{describeState(comm.state)}</td>
            <td class="number" data-label="last call">
              {lastCall(comm.entered)}
            </td>
            <td class="number" data-label="finished on the GPU">
              {comm.finished < 0 ? "unknown" : count(comm.finished)}
            </td>
            <td>
              {newest !== undefined && `#${count(newest.call.position)} ${call(newest.call)}`}
            </td>
            <td class="code">{newest?.call.code}</td>
          </tr>
        );
      })}
    </Table>
  );
}

// The stacks of the rank that the daemon took in an incident.
function StacksThen({ job, id, rank }: { job: JobAddress; id: string; rank: number }) {
  const live = useLive<Incident>(incidentPath(id));
  if (live.value === undefined) return <Waiting live={live} what="the incident's stacks" />;
  const stacks = live.value.stacks.filter((stack) => stack.rank === rank);
  return (
    <>
      <h3>
        Then: in the incident <IncidentLink id={id} />, opened <Time at={live.value.opened_at} />
      </h3>
      {stacks.length === 0 && (
        <p class="soft">
          This incident has no stacks of the rank. The daemon takes those of the culprits and of
          some ranks that wait.
        </p>
      )}
      {stacks.map((stack, index) => (
        <Stack key={index} stack={stack} job={job} isOpen={index === stacks.length - 1} />
      ))}
    </>
  );
}

function Incidents({ rank, list }: { rank: number; list: ListIncidentsResponse }) {
  const own = list.incidents.filter((one) => {
    const verdict = one.verdicts[0];
    return verdict !== undefined && hasRank(culpritRanks(verdict).ranks, rank);
  });
  const looked = list.incidents.length;
  return (
    <Section title="Incidents">
      <p>
        {looked === 0
          ? "The job has had no incident."
          : `Rank ${rank} was a culprit in ${count(own.length)} of ` +
            (looked < list.total ? `the newest ${looked} incidents` : plural(looked, "incident")) +
            " of this job, counting all of its attempts."}
      </p>
      {own.length > 0 && <IncidentTable incidents={own} withJob={false} />}
    </Section>
  );
}

function Neighbours({ job, ranks }: { job: JobAddress; ranks: number[] }) {
  if (ranks.length === 0) return null;
  return (
    <nav class="neighbours" aria-label="neighbouring ranks">
      {ranks.map((rank) => (
        <a key={rank} href={rankAddress(job, rank)}>
          Rank {rank}
        </a>
      ))}
    </nav>
  );
}

export function Rank({ name, rank }: { name: string; rank: number }) {
  const { query } = useAddress();
  const job: JobAddress = {
    job: name,
    tenant: query.get("tenant") ?? "",
    attempt: query.get("attempt") ?? "",
  };
  const ranks = String(rank);
  const processes = useLive<ProcessesResponse>(
    processesPath(job, { ranks: `${Math.max(rank - 1, 0)}-${rank + 1}`, limit: "60" }),
  );
  const calls = useLive<CallsResponse>(callsPath(job, ranks, kCallsRead));
  const incidents = useLive<ListIncidentsResponse>(
    incidentsPath({ job: name, tenant: job.tenant, limit: String(kMostIncidents) }),
  );
  const heading = (
    <h1>
      Rank {rank} of <a href={jobAddress(job)}>{name}</a>
      {job.attempt !== "" && ` attempt ${job.attempt}`}
    </h1>
  );
  if (processes.value === undefined || calls.value === undefined)
    return (
      <main>
        {heading}
        <Waiting live={processes.problem === "" ? calls : processes} what="the rank" />
      </main>
    );
  // A rank that was started again has several processes; the newest is the last one.
  const near = processes.value.processes;
  const list = near.filter((one) => one.rank === rank);
  const neighbours = [rank - 1, rank + 1].filter((next) => near.some((one) => one.rank === next));
  const process = list[list.length - 1];
  const own = calls.value.ranks[0]?.communicators ?? [];
  const of_attempt = incidents.value?.incidents.filter(
    (one) => job.attempt === "" || String(one.attempt) === job.attempt,
  );
  const last = of_attempt?.[0];
  const mismatch = mismatchOf(last);
  const verdict = last?.closed_at === undefined ? last?.verdicts[0] : undefined;
  const isCulprit = verdict !== undefined && hasRank(culpritRanks(verdict).ranks, rank);
  return (
    <main>
      {heading}
      <Stale live={processes} />
      {process === undefined && own.length === 0 ? (
        <p class="sentence">
          No agent has reported this rank. <a href={jobAddress(job)}>The job</a> shows the ranks
          that have reported.
        </p>
      ) : (
        <p class={isCulprit ? "sentence sentence-hung" : "sentence"} role="status">
          {isCulprit && (
            <>
              <b>{last!.state === "suspected" ? "Perhaps a culprit" : "A culprit"}</b> of the
              incident <IncidentLink id={last!.id} />: {verdict!.summary}.{" "}
            </>
          )}
          {!isCulprit && doing(process, calls.value)}
        </p>
      )}
      {process !== undefined && <Who process={process} />}
      {list.length > 1 && (
        <details>
          <summary>{plural(list.length - 1, "earlier process", "earlier processes")}</summary>
          {list.slice(0, -1).map((one) => (
            <Who key={`${one.host} ${one.pid}`} process={one} />
          ))}
        </details>
      )}
      <Neighbours job={job} ranks={neighbours} />
      <Section title="Communicators">
        <Communicators job={job} list={own} />
      </Section>
      <Section title="Last calls">
        <Timeline job={job} ranks={ranks} mismatch={mismatch} />
      </Section>
      <Section title="Stacks">
        {last === undefined ? (
          <p class="soft">No incident has its stacks.</p>
        ) : (
          <StacksThen job={job} id={last.id} rank={rank} />
        )}
        {process?.liveness === "alive" && <StacksNow job={job} ranks={[rank]} />}
      </Section>
      {process !== undefined && (
        <Section title="Environment that matters to NCCL">
          <Environment text={process.environment} />
        </Section>
      )}
      {incidents.value !== undefined && <Incidents rank={rank} list={incidents.value} />}
    </main>
  );
}
