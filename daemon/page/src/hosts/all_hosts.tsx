// SPDX-License-Identifier: Apache-2.0
// The hosts of all jobs: those whose agent is silent, and of each host its jobs and how often culprits
// were on it; agents of another release than the daemon's; and the jobs that are not recorded.
import { useMemo } from "preact/hooks";
import { setParameters, useAddress } from "../address";
import { incidentsPath, jobPath, jobsPath } from "../api";
import { count, plural } from "../format";
import { useGrowing } from "../growing";
import { lost, standsStill } from "../jobs/idle";
import { SilentDaemons } from "../jobs/jobs";
import { Unrecorded } from "../jobs/unrecorded";
import { HostLink, RankLinks } from "../links";
import { useLive } from "../live";
import type { JobStatus, JobView, ListIncidentsResponse, StatusResponse } from "../messages";
import { type Column, JobLink, Pager, Stale, Table, Waiting } from "../parts";
import { type HostRow, hostRows, type SilentHost, silentHosts } from "./host_rows";

const kLimit = 1000; // the most that the daemon sends
const kMostLooked = 8; // jobs whose ranks are asked for silent hosts
const kMostNamed = 32;

const columns: Column[] = [
  ["Host"],
  ["Jobs"],
  ["Jobs that stand still", "number"],
  ["Incidents with a culprit here", "number"],
];

function SilentIn({ job }: { job: JobStatus }) {
  const address = { job: job.name, tenant: job.tenant, attempt: String(job.attempt) };
  const view = useLive<JobView>(jobPath(address)).value;
  const silent: SilentHost[] = useMemo(() => (view === undefined ? [] : silentHosts(view)), [view]);
  if (silent.length === 0) return null;
  return (
    <li>
      <b>{plural(silent.length, "host")} silent</b> in{" "}
      <JobLink job={job.name} tenant={job.tenant} />:{" "}
      {silent.slice(0, kMostNamed).map((one, index) => (
        <span key={one.host}>
          {index > 0 && ", "}
          <HostLink host={one.host} /> (ranks <RankLinks job={address} ranks={one.ranks} />)
        </span>
      ))}
      {silent.length > kMostNamed && ` and ${count(silent.length - kMostNamed)} more`}
    </li>
  );
}

// The agent of a silent host reports nothing any more: the host, its network or the agent is gone.
function Silent({ jobs, now }: { jobs: JobStatus[]; now: number }) {
  const alive = jobs
    .filter((job) => job.state !== "ended")
    .sort((a, b) => lost(b, now) - lost(a, now) || b.ranks - a.ranks);
  const looked = alive.slice(0, kMostLooked);
  return (
    <>
      <ul class="silent">
        {looked.map((job) => (
          <SilentIn key={JSON.stringify([job.tenant, job.name])} job={job} />
        ))}
      </ul>
      <p class="soft">
        A host is silent when its agent reports nothing any more. Looked at{" "}
        {looked.length < alive.length
          ? `the ${looked.length} jobs of ${count(alive.length)} that lose or use most`
          : plural(looked.length, "running job")}
        .
      </p>
    </>
  );
}

// Agents of another release than the daemon's, most likely left behind by an upgrade.
function OtherReleases({ status }: { status: StatusResponse }) {
  const others = status.agent_releases.filter((one) => one.release !== status.rollcall_version);
  // The daemon names 16 releases.
  const unnamed = status.agents - status.agent_releases.reduce((sum, one) => sum + one.agents, 0);
  if (others.length === 0) return null;
  return (
    <ul class="releases">
      {others.map((one) => (
        <li key={one.release}>
          <b>
            {plural(one.agents, "agent")} {one.agents === 1 ? "runs" : "run"}{" "}
            {one.release === "" ? "an unknown release" : `release ${one.release}`}
          </b>
          , the daemon release {status.rollcall_version}:{" "}
          {one.hosts.map((host, index) => (
            <span key={host}>
              {index > 0 && ", "}
              <HostLink host={host} />
            </span>
          ))}
          {one.agents > one.hosts.length && " and others"}
        </li>
      ))}
      {unnamed > 0 && <li>{plural(unnamed, "agent")} of other releases</li>}
    </ul>
  );
}

function Row({ row }: { row: HostRow }) {
  return (
    <tr>
      <th scope="row">
        <HostLink host={row.host} />
      </th>
      <td class="wide">
        {row.jobs.slice(0, 4).map((job, index) => (
          <span key={JSON.stringify([job.tenant, job.name])}>
            {index > 0 && ", "}
            <JobLink job={job.name} tenant={job.tenant} />
          </span>
        ))}
        {row.jobs.length > 4 && ` and ${row.jobs.length - 4} more`}
      </td>
      <td class="number" data-label="stand still">
        {row.still > 0 ? row.still : ""}
      </td>
      <td class="number" data-label="incidents">
        {row.incidents > 0 ? row.incidents : ""}
      </td>
    </tr>
  );
}

function Hosts({ status }: { status: StatusResponse }) {
  const { query } = useAddress();
  const wanted = (query.get("q") ?? "").toLowerCase();
  const repeated = useLive<ListIncidentsResponse>(incidentsPath({ limit: "1" })).value?.repeated;
  const rows = useMemo(() => hostRows(status.jobs, repeated ?? []), [status, repeated]);
  const found = rows.filter((row) => row.host.toLowerCase().includes(wanted));
  const { most, below } = useGrowing(found.length);
  const still = status.jobs.filter(standsStill).length;
  return (
    <>
      <p class="soft">
        {plural(rows.length, "host")}, {plural(status.agents, "agent")} connected
        {still > 0 && `, ${plural(still, "job")} ${still === 1 ? "stands" : "stand"} still`}
      </p>
      <div class="filters" role="search">
        <label>
          Search{" "}
          <input
            type="search"
            value={query.get("q") ?? ""}
            onInput={(event) => setParameters({ q: event.currentTarget.value })}
          />
        </label>
      </div>
      <Table label="hosts" kind="stacked" columns={columns}>
        {found.slice(0, most).map((row) => (
          <Row key={row.host} row={row} />
        ))}
      </Table>
      {below}
      {found.length === 0 && <p role="status">No host matches.</p>}
    </>
  );
}

export function AllHosts() {
  const { query } = useAddress();
  const offset = Number(query.get("offset")) || 0;
  const live = useLive<StatusResponse>(jobsPath(offset, kLimit));
  if (live.value === undefined)
    return (
      <main>
        <h1>Hosts</h1>
        <Waiting live={live} what="the hosts" />
      </main>
    );
  const now = Date.parse(live.value.now);
  return (
    <main>
      <h1>Hosts</h1>
      <Stale live={live} />
      <SilentDaemons names={live.value.silent_daemons} />
      <Silent jobs={live.value.jobs} now={now} />
      <OtherReleases status={live.value} />
      <Hosts status={live.value} />
      <Pager
        offset={offset}
        limit={kLimit}
        total={live.value.jobs_total}
        onChange={(next) => setParameters({ offset: next === 0 ? "" : String(next) })}
      />
      <Unrecorded jobs={live.value.unrecorded} now={now} />
    </main>
  );
}
