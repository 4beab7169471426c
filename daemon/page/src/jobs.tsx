// SPDX-License-Identifier: Apache-2.0
// All jobs, the sick ones first.
import { jobsPath } from "./api";
import { plural } from "./format";
import { useLive } from "./live";
import type { JobStatus, StatusResponse } from "./messages";
import { IncidentLink, JobLink, Stale, State, Time, Waiting } from "./parts";

const order = ["hung", "suspected", "waiting", "running", "ended"];

function Row({ job }: { job: JobStatus }) {
  const last = job.last_incident;
  return (
    <tr>
      <td><State state={job.state} /></td>
      <th scope="row"><JobLink job={job.name} /></th>
      <td class="number">{job.ranks}</td>
      <td class="number">{job.processes_alive} / {job.processes}</td>
      <td class="number">{job.hosts.length}</td>
      <td class="number">{job.calls_per_second.toFixed(1)}</td>
      <td class="wide">
        {job.summary}
        {job.summary === "" && job.warnings.map((warning) => <span class="warning">{warning}</span>)}
        {job.summary === "" && last !== undefined &&
          <span class="soft">last incident: <IncidentLink id={last.id}>{last.cause}</IncidentLink>, <Time at={last.opened_at} /></span>}
      </td>
    </tr>
  );
}

export function Jobs() {
  const live = useLive<StatusResponse>(jobsPath);
  if (live.value === undefined) return <main><Waiting live={live} what="the jobs" /></main>;
  const jobs = [...live.value.jobs].sort((a, b) =>
    order.indexOf(a.state) - order.indexOf(b.state) || a.name.localeCompare(b.name));
  return (
    <main>
      <h1>Jobs</h1>
      <Stale live={live} />
      <p class="soft">{plural(live.value.agents, "agent")} connected, release {live.value.rollcall_version}</p>
      {jobs.length === 0
        ? <p>No job has connected yet. Start one with <code>rollcall run --daemon=HOST:PORT -- CMD…</code>, or start <code>rollcall-agent</code> on its hosts.</p>
        : <div class="scroll" tabIndex={0} role="region" aria-label="jobs"><table>
            <thead><tr><th>state</th><th>job</th><th class="number">ranks</th><th class="number">processes alive</th><th class="number">hosts</th><th class="number">calls/s per rank</th><th>problem</th></tr></thead>
            <tbody>{jobs.map((job) => <Row key={job.name} job={job} />)}</tbody>
          </table></div>}
    </main>
  );
}
