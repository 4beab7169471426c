// SPDX-License-Identifier: Apache-2.0
// One host: the jobs that have had processes on it, whether culprits of hangs are on it more often
// than on others, and what it showed when its agent looked at it.
import { formatAddress, setParameters, useAddress } from "../address";
import { incidentsPath, type JobAddress, jobsPath } from "../api";
import { count, plural } from "../format";
import { IncidentTable } from "../incidents/incident_table";
import { SilentDaemons, stateWords } from "../jobs/jobs";
import { Processes } from "../jobs/processes";
import { HostLink, Sentence } from "../links";
import { type Live, useLive } from "../live";
import type { Incident, JobStatus, ListIncidentsResponse, StatusResponse } from "../messages";
import { JobLink, Pager, Section, Stale, State, Time, Waiting } from "../parts";
import { HostFactsTable } from "./hosts";

const kMostJobs = 100;
const kMostOpen = 4; // jobs whose processes are shown at once
const kLimit = 50;

function addressOf(job: JobStatus): JobAddress {
  return { job: job.name, tenant: job.tenant, attempt: String(job.attempt) };
}

// Whether the culprits are always here: its share of all incidents, beside that of other hosts.
function Record({
  host,
  own,
  all,
}: {
  host: string;
  own: ListIncidentsResponse;
  all: ListIncidentsResponse;
}) {
  const others = all.repeated.filter((one) => one.host !== "" && one.host !== host).slice(0, 3);
  if (own.total === 0)
    return (
      <p class="sentence sentence-running">
        No culprit of{" "}
        {all.total === 1 ? "the one incident" : `all ${plural(all.total, "incident")}`} was on this
        host.
      </p>
    );
  const jobs = new Set(own.incidents.map((one) => JSON.stringify([one.tenant, one.job]))).size;
  const whole = own.incidents.length === own.total;
  return (
    <>
      <p class="sentence sentence-waiting">
        A culprit was on this host in {count(own.total)} of {plural(all.total, "incident")}
        {whole && `, in ${plural(jobs, "job")}`}.
      </p>
      {others.length > 0 && (
        <p class="soft">
          Other hosts with culprits of more than one incident:{" "}
          {others.map((one, index) => (
            <span key={one.host}>
              {index > 0 && ", "}
              <HostLink host={one.host} /> ({count(one.incidents)})
            </span>
          ))}
        </p>
      )}
    </>
  );
}

// The newest incident in which the agent of the host noted something.
function lastWithFacts(host: string, incidents: Incident[]): Incident | undefined {
  return incidents.find((one) =>
    one.host_facts.some((facts) => facts.host === host && facts.facts.length > 0),
  );
}

function JobHere({ job, host, isOpen }: { job: JobStatus; host: string; isOpen: boolean }) {
  return (
    <div class="here">
      <h3>
        <State state={stateWords(job)} /> <JobLink job={job.name} tenant={job.tenant} />
        {(job.attempt > 0 || job.attempts.length > 0) && (
          <span class="soft"> attempt {job.attempt}</span>
        )}
      </h3>
      {job.summary !== "" && (
        <p>
          <Sentence job={addressOf(job)} text={job.summary} />
        </p>
      )}
      {isOpen && <Processes job={addressOf(job)} host={host} />}
    </div>
  );
}

function Jobs({ host, live }: { host: string; live: Live<StatusResponse> }) {
  if (live.value === undefined) return <Waiting live={live} what="the jobs" />;
  const jobs = live.value.jobs;
  return (
    <>
      <Stale live={live} />
      <SilentDaemons names={live.value.silent_daemons} />
      {jobs.length === 0 && <p class="soft">No job of this daemon has a process on this host.</p>}
      {jobs.map((job, index) => (
        <JobHere
          key={JSON.stringify([job.tenant, job.name])}
          job={job}
          host={host}
          isOpen={index < kMostOpen}
        />
      ))}
      {live.value.jobs_total > jobs.length && (
        <p class="soft">
          The first {jobs.length} of {count(live.value.jobs_total)} jobs.
        </p>
      )}
    </>
  );
}

export function Host({ host }: { host: string }) {
  const { query } = useAddress();
  const offset = Number(query.get("offset")) || 0;
  const own = useLive<ListIncidentsResponse>(
    incidentsPath({ host, offset: String(offset), limit: String(kLimit) }),
  );
  const all = useLive<ListIncidentsResponse>(incidentsPath({ limit: "1" }));
  const jobs = useLive<StatusResponse>(jobsPath(0, kMostJobs, host));
  const facts = lastWithFacts(host, own.value?.incidents ?? []);
  if (own.value?.total === 0 && jobs.value?.jobs_total === 0)
    return (
      <main>
        <h1>Host {host}</h1>
        <Stale live={own} />
        <SilentDaemons names={jobs.value.silent_daemons} />
        <p class="sentence" role="status">
          Unknown host: no job of this daemon has a process on a host of this name, and no incident
          has a culprit on it.
        </p>
        <p>
          <a href={formatAddress([])}>All jobs</a>
        </p>
      </main>
    );
  return (
    <main>
      <h1>Host {host}</h1>
      <Stale live={own} />
      {own.value !== undefined && all.value !== undefined && (
        <Record host={host} own={own.value} all={all.value} />
      )}
      <Section title="Jobs on this host">
        <Jobs host={host} live={jobs} />
      </Section>
      <Section title="Incidents with a culprit on this host">
        {own.value === undefined ? (
          <Waiting live={own} what="incidents" />
        ) : own.value.total === 0 ? (
          <p class="soft">None.</p>
        ) : (
          <>
            <IncidentTable incidents={own.value.incidents} withJob />
            <Pager
              offset={offset}
              limit={kLimit}
              total={own.value.total}
              onChange={(next) => setParameters({ offset: next === 0 ? "" : String(next) })}
            />
          </>
        )}
      </Section>
      {facts !== undefined && (
        <Section title="What the host showed">
          <p class="soft">
            When the incident {facts.id} opened, <Time at={facts.opened_at} />
          </p>
          <HostFactsTable
            rows={facts.host_facts
              .filter((one) => one.host === host)
              .flatMap((one) => one.facts.map((fact) => ({ host, fact })))}
          />
        </Section>
      )}
    </main>
  );
}
