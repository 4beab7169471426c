// SPDX-License-Identifier: Apache-2.0
// All jobs: those with an open incident first, then the others, both by name. Each page shows those
// with problems first.
import { formatAddress, setParameters, useAddress } from "./address";
import { jobsPath } from "./api";
import { count, plural } from "./format";
import { useLive } from "./live";
import type { JobStatus, StatusResponse } from "./messages";
import {
  type Column,
  IncidentLink,
  JobLink,
  Pager,
  Stale,
  State,
  Table,
  Time,
  Waiting,
} from "./parts";

const kLimit = 1000; // the most that the daemon sends

const columns: Column[] = [
  ["State"],
  ["Job"],
  ["Ranks", "number"],
  ["Processes alive", "number"],
  ["Hosts", "number"],
  ["Calls/s per rank", "number"],
  ["Problem"],
];
const order = ["hung", "suspected", "waiting", "running", "ended"];

function Row({ job }: { job: JobStatus }) {
  const last = job.last_incident;
  return (
    <tr>
      <td>
        <State state={job.state} />
      </td>
      <th scope="row">
        <JobLink job={job.name} tenant={job.tenant} />
        {(job.attempt > 0 || job.attempts.length > 0) && (
          <span class="soft"> attempt {job.attempt}</span>
        )}
      </th>
      <td class="number">{job.ranks}</td>
      <td class="number">
        {job.processes_alive} / {job.processes}
      </td>
      <td class="number">{job.hosts.length}</td>
      <td class="number">{job.calls_per_second.toFixed(1)}</td>
      <td class="wide">
        {job.summary}
        {job.summary === "" &&
          job.warnings.map((warning) => <span class="warning">{warning}</span>)}
        {job.summary === "" && last !== undefined && (
          <span class="soft">
            Last incident: <IncidentLink id={last.id}>{last.cause}</IncidentLink>,{" "}
            <Time at={last.opened_at} />
          </span>
        )}
      </td>
    </tr>
  );
}

export function Jobs() {
  const offset = Number(useAddress().query.get("offset")) || 0;
  const live = useLive<StatusResponse>(jobsPath(offset, kLimit));
  if (live.value === undefined)
    return (
      <main>
        <Waiting live={live} what="the jobs" />
      </main>
    );
  const total = Math.max(live.value.jobs_total, offset + live.value.jobs.length);
  const jobs = [...live.value.jobs].sort(
    (a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.name.localeCompare(b.name),
  );
  return (
    <main>
      <h1>Jobs</h1>
      <Stale live={live} />
      <p class="soft">
        {plural(live.value.agents, "agent")} connected, release {live.value.rollcall_version}
      </p>
      {total > jobs.length && (
        <p class="soft">
          This page shows {count(jobs.length)} of {plural(total, "job")}.{" "}
          <a href={formatAddress(["history"])}>Incidents</a> lists the hangs of all jobs.
        </p>
      )}
      {total === 0 ? (
        <p>
          No job has connected yet. Start one with{" "}
          <code>rollcall run --daemon=HOST:PORT -- CMD…</code>, or start <code>rollcall-agent</code>{" "}
          on its hosts.
        </p>
      ) : (
        <Table label="jobs" columns={columns}>
          {jobs.map((job) => (
            <Row key={`${job.tenant}/${job.name}`} job={job} />
          ))}
        
        </Table>
      )}
      <Pager
        offset={offset}
        limit={kLimit}
        total={total}
        onChange={(next) => setParameters({ offset: next === 0 ? "" : String(next) })}
      />
    </main>
  );
}
