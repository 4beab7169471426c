// SPDX-License-Identifier: Apache-2.0
// One communicator: its members with their positions and waits, those behind first, and its
// incidents.
import { setParameters, useAddress } from "../address";
import { communicatorPath, incidentsPath, type JobAddress } from "../api";
import { call, count, lastCall, lastCalls, plural, seconds } from "../format";
import { IncidentTable } from "../incidents/incident_table";
import { HostLink, jobAddress, RankLink, RankLinks } from "../links";
import { type Live, useLive } from "../live";
import type {
  CommunicatorStatus,
  CommunicatorView,
  ListIncidentsResponse,
  MemberView,
} from "../messages";
import { type Column, Facts, Pager, Section, Stale, Table, Waiting } from "../parts";
import { inWords, type Mismatch, madeAnother, mismatchOf } from "./mismatch";
import { describeState } from "./states";

const kLimit = 100;
const kMostIncidents = 100;

const columns: Column[] = [
  ["Rank", "number"],
  ["Rank in it", "number"],
  ["Host"],
  ["State"],
  ["Last call", "number"],
  ["Finished on the GPU", "number"],
  ["Has waited", "number"],
  ["Newest call"],
  ["Code"],
];

function Row({
  job,
  member,
  mismatch,
}: {
  job: JobAddress;
  member: MemberView;
  mismatch: Mismatch | undefined;
}) {
  const calls = member.calls;
  const isOther = madeAnother(mismatch, calls.communicator.id, member.rank);
  const newest = calls.calls[calls.calls.length - 1];
  return (
    <tr class={isOther ? "differs" : calls.state === "w" ? "waits" : ""}>
      <th scope="row" class="number" data-label="rank">
        {member.rank < 0 ? "unknown" : <RankLink job={job} rank={member.rank} />}
      </th>
      <td class="number" data-label="rank in it">
        {calls.rank_in_communicator}
      </td>
      <td data-label="on">
        <HostLink host={member.host} />
      </td>
      <td>
        {describeState(calls.state)}
        {isOther && <b> ≠ {inWords(mismatch!)}</b>}
      </td>
      <td class="number" data-label="last call">
        {lastCall(calls.entered)}
      </td>
      <td class="number" data-label="finished on the GPU">
        {calls.finished < 0 ? "unknown" : count(calls.finished)}
      </td>
      <td class="number" data-label="has waited">
        {member.waited_seconds > 0 ? seconds(member.waited_seconds) : ""}
      </td>
      <td>{newest !== undefined && `#${count(newest.call.position)} ${call(newest.call)}`}</td>
      <td class="code">{newest?.call.code}</td>
    </tr>
  );
}

function State({ job, status }: { job: JobAddress; status: CommunicatorStatus }) {
  if (status.waiting === 0)
    return (
      <p class="sentence" role="status">
        No rank waits for others on it.
      </p>
    );
  return (
    <p class="sentence sentence-waiting" role="status">
      {plural(status.waiting, "rank")} {status.waiting === 1 ? "waits" : "wait"} in{" "}
      {call(status.call) || status.operation || "a call"} for {seconds(status.waited_seconds)}
      {status.laggards_total > 0 && (
        <>
          ; behind {status.laggards_total === 1 ? "is rank " : "are ranks "}
          <RankLinks job={job} ranks={status.laggards.join(", ")} />
          {status.laggards_total > status.laggards.length &&
            ` and ${count(status.laggards_total - status.laggards.length)} more`}
        </>
      )}
      .
    </p>
  );
}

function Incidents({ live, id }: { live: Live<ListIncidentsResponse>; id: string }) {
  if (live.value === undefined) return <Waiting live={live} what="incidents" />;
  const own = live.value.incidents.filter((one) =>
    one.verdicts.some((verdict) => verdict.communicator?.id === id),
  );
  if (own.length === 0) return <p class="soft">No incident names it.</p>;
  return <IncidentTable incidents={own} withJob={false} />;
}

export function Communicator({ name, id }: { name: string; id: string }) {
  const { query } = useAddress();
  const job: JobAddress = {
    job: name,
    tenant: query.get("tenant") ?? "",
    attempt: query.get("attempt") ?? "",
  };
  const offset = Number(query.get("offset")) || 0;
  const live = useLive<CommunicatorView>(communicatorPath(job, id, offset, kLimit));
  const incidents = useLive<ListIncidentsResponse>(
    incidentsPath({ ...job, limit: String(kMostIncidents) }),
  );
  const mismatch = mismatchOf(incidents.value?.incidents[0]);
  const view = live.value;
  const heading = (
    <h1>
      Communicator {view?.status.name ? `“${view.status.name}”` : id} of{" "}
      <a href={jobAddress(job)}>{name}</a>
      {job.attempt !== "" && ` attempt ${job.attempt}`}
    </h1>
  );
  if (view === undefined)
    return (
      <main>
        {heading}
        <Waiting live={live} what="the communicator" />
      </main>
    );
  const status = view.status;
  return (
    <main>
      {heading}
      <Stale live={live} />
      <State job={job} status={status} />
      <Facts
        facts={[
          ["Id", <span class="code">{status.id}</span>],
          ["Ranks", count(status.size)],
          ["Reported", view.total < status.size && count(view.total)],
          ["Last call", lastCalls(status)],
        ]}
      />
      {view.missing_ranks !== "" && (
        <p class="warning">
          No agent has reported its {/[-,]/.test(view.missing_ranks) ? "ranks" : "rank"}{" "}
          {view.missing_ranks} (numbers in the communicator).
        </p>
      )}
      <Section title="Ranks">
        <Table label="ranks" kind="stacked" columns={columns}>
          {view.members.map((member) => (
            <Row
              key={member.calls.rank_in_communicator}
              job={job}
              member={member}
              mismatch={mismatch}
            />
          ))}
        </Table>
        <Pager
          offset={offset}
          limit={kLimit}
          total={view.total}
          onChange={(next) => setParameters({ offset: next === 0 ? "" : String(next) })}
        />
      </Section>
      <Section title="Incidents">
        <Incidents live={incidents} id={status.id} />
      </Section>
    </main>
  );
}
