// SPDX-License-Identifier: Apache-2.0
// All jobs: those that hang first, and of these the most expensive. The reader sorts, searches and filters them.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { formatAddress, setParameters, useAddress } from "../address";
import { jobsPath } from "../api";
import { count, plural, seconds } from "../format";
import { useGrowing } from "../growing";
import { Referral } from "../incidents/referral";
import { Silences } from "../incidents/silences";
import { Sentence } from "../links";
import { useLive } from "../live";
import type { IncidentSummary, JobStatus, StatusResponse } from "../messages";
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
} from "../parts";
import { idleInWords, lost, since, standsStill } from "./idle";
import { Unrecorded } from "./unrecorded";

const kLimit = 1000; // the most that the daemon sends
const kDefaultTenant = "default";

const states = ["hung", "suspected", "waiting", "running", "ended"];

// Whether the job's last incident ended with the job.
export function endedHung(job: JobStatus): boolean {
  return job.state === "ended" && job.last_incident?.state === "ended";
}

// The state of the job, and how it ended. Only a job whose processes all ended in good order is over
// well: a signal that ends them may come from a person, and from a scheduler.
export function stateWords(job: JobStatus): string {
  if (job.state !== "ended") return job.state;
  if (endedHung(job)) return "ended hung";
  if (job.processes_died > 0) return "ended, died";
  return job.processes_exited < job.processes ? "ended, exit unknown" : "ended";
}

type Order = (a: JobStatus, b: JobStatus) => number;
const collator = new Intl.Collator(); // much faster than localeCompare()
const byName: Order = (a, b) =>
  collator.compare(a.name, b.name) || collator.compare(a.tenant, b.tenant);
// Jobs that stand still first, the most expensive of them at the top; of the others the longest in a
// state first, and the newest end.
const byUrgency = (now: number): Order => {
  const urgency = (job: JobStatus) => (standsStill(job) ? 0 : states.indexOf(job.state));
  return (a, b) =>
    urgency(a) - urgency(b) ||
    lost(b, now) - lost(a, now) ||
    (a.state === "ended" ? since(b) - since(a) : since(a) - since(b)) ||
    byName(a, b);
};

const orders: Record<string, Order> = {
  time: (a, b) => since(a) - since(b) || byName(a, b),
  job: byName,
  ranks: (a, b) => b.ranks - a.ranks || byName(a, b),
  calls: (a, b) => b.calls_per_second - a.calls_per_second || byName(a, b),
};

// Whether all words occur in what the row shows, or in the names of the hosts.
function matches(job: JobStatus, words: string[]): boolean {
  const text = [
    job.tenant,
    job.name,
    job.summary,
    job.last_incident?.cause,
    job.daemon,
    ...job.hosts,
  ]
    .join(" ")
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

// Whether the hang has come back, and who takes care of it.
function About({ incident }: { incident: IncidentSummary | undefined }) {
  const words = [
    incident?.repeat ?? "",
    incident?.acknowledged_by ? `acknowledged by ${incident.acknowledged_by}` : "",
  ].filter((one) => one !== "");
  return words.length === 0 ? null : <span class="soft"> ({words.join("; ")})</span>;
}

function Problem({ job }: { job: JobStatus }) {
  const last = job.last_incident;
  const address = { job: job.name, tenant: job.tenant, attempt: String(job.attempt) };
  if (job.summary !== "")
    return (
      <>
        <Sentence job={address} text={job.summary} />
        <About incident={last} />
      </>
    );
  if (endedHung(job))
    return (
      <>
        Ended while it hung: <Sentence job={address} text={last!.summary} />{" "}
        <IncidentLink id={last!.id}>{last!.cause}</IncidentLink>
        <About incident={last} />
      </>
    );
  if (job.waits_for !== undefined)
    return (
      <span class="warning">
        <Referral to={job.waits_for} />
      </span>
    );
  if (job.warnings.length > 0)
    return (
      <>
        {job.warnings.map((warning) => (
          <span class="warning">
            <Sentence job={address} text={warning} />
          </span>
        ))}
      </>
    );
  if (last === undefined) return null;
  return (
    <span class="soft">
      Last incident: <IncidentLink id={last.id}>{last.cause}</IncidentLink>,{" "}
      <Time at={last.opened_at} />
      <About incident={last} />
    </span>
  );
}

// `daemon`: whether to name the daemon that has the job.
function Row({ job, now, daemon }: { job: JobStatus; now: number; daemon: boolean }) {
  const began = since(job);
  return (
    <tr>
      <td class="first">
        <State state={stateWords(job)} />
      </td>
      <th scope="row">
        <JobLink job={job.name} tenant={job.tenant} />
        {(job.attempt > 0 || job.attempts.length > 0) && (
          <span class="soft"> attempt {job.attempt}</span>
        )}
      </th>
      <td class="wide">
        <Problem job={job} />
      </td>
      <td class="number" data-label="for" title={began === 0 ? "" : new Date(began).toISOString()}>
        {began === 0 ? "" : seconds(Math.max(0, (now - began) / 1000))}
      </td>
      <td class="number" data-label="ranks">
        {job.ranks}
      </td>
      <td class="number" data-label="processes alive">
        {job.processes_alive} / {job.processes}
      </td>
      <td class="number" data-label="hosts">
        {job.hosts.length}
      </td>
      <td class="number" data-label="calls/s per rank">
        {job.state === "ended" ? "" : job.calls_per_second.toFixed(1)}
      </td>
      {daemon && <td data-label="daemon">{job.daemon}</td>}
    </tr>
  );
}

// A heading that sorts the table.
function Sorter({ by, chosen, children }: { by: string; chosen: string; children: string }) {
  return (
    <button
      type="button"
      class="sorter"
      aria-pressed={by === chosen}
      title={`Sort by ${children.toLowerCase()}`}
      onClick={() => setParameters({ sort: by === "state" ? "" : by })}
    >
      {children}
      {by === chosen && <span aria-hidden="true"> ▾</span>}
    </button>
  );
}

function Choice({
  name,
  value,
  all,
  values,
}: {
  name: string;
  value: string;
  all: string;
  values: string[];
}) {
  return (
    <label>
      {name}{" "}
      <select
        value={value}
        onChange={(event) => setParameters({ [name]: event.currentTarget.value })}
      >
        <option value="">{all}</option>
        {values.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

function Filters({ jobs, query }: { jobs: JobStatus[]; query: URLSearchParams }) {
  const tenants = [...new Set(jobs.map((job) => job.tenant))].sort();
  const states_here = states.filter((state) => jobs.some((job) => job.state === state));
  return (
    <div class="filters" role="search">
      <label>
        Search{" "}
        <input
          type="search"
          placeholder="job, host, cause …"
          value={query.get("q") ?? ""}
          onInput={(event) => setParameters({ q: event.currentTarget.value })}
        />
      </label>
      <Choice name="state" value={query.get("state") ?? ""} all="all" values={states_here} />
      {(tenants.length > 1 || (tenants[0] ?? kDefaultTenant) !== kDefaultTenant) && (
        <Choice name="tenant" value={query.get("tenant") ?? ""} all="all" values={tenants} />
      )}
    </div>
  );
}

function choose(jobs: JobStatus[], query: URLSearchParams, now: number): JobStatus[] {
  const words = (query.get("q") ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const state = query.get("state") ?? "";
  const tenant = query.get("tenant") ?? "";
  return jobs
    .filter(
      (job) =>
        (state === "" || job.state === state) &&
        (tenant === "" || job.tenant === tenant) &&
        matches(job, words),
    )
    .sort(orders[query.get("sort") ?? ""] ?? byUrgency(now));
}

// Shown if several daemons share one database.
export function SilentDaemons({ names }: { names: string[] }) {
  if (names.length === 0) return null;
  const several = names.length > 1;
  return (
    <p class="problem" role="alert">
      {several ? "These daemons do" : "This daemon does"} not answer: {names.join(", ")}.{" "}
      {several ? "Their" : "Its"} jobs are missing here until{" "}
      {several ? "they answer or others have" : "it answers or another has"} taken them over.
    </p>
  );
}

const worstOf = (jobs: JobStatus[]) => states.find((one) => jobs.some((job) => job.state === one));

// "2 hung, 7 running"
function counts(jobs: JobStatus[]): string {
  return states
    .map((state) => [jobs.filter((job) => job.state === state).length, state] as const)
    .filter(([number]) => number > 0)
    .map(([number, state]) => `${count(number)} ${state}`)
    .join(", ");
}

export function Jobs() {
  const { query } = useAddress();
  const offset = Number(query.get("offset")) || 0;
  const live = useLive<StatusResponse>(jobsPath(offset, kLimit));
  const now = Date.parse(live.value?.now ?? "");
  const jobs = useMemo(
    () => choose(live.value?.jobs ?? [], query, now),
    [live.value, query.toString()],
  );
  const { most, below } = useGrowing(jobs.length);
  if (live.value === undefined)
    return (
      <main>
        <Waiting live={live} what="the jobs" />
      </main>
    );
  const all = live.value.jobs;
  const total = Math.max(live.value.jobs_total, offset + all.length);
  const idle = idleInWords(all, now);
  const sort = query.get("sort") ?? "state";
  const sorter = (by: string, words: string): ComponentChildren => (
    <Sorter by={by} chosen={sort}>
      {words}
    </Sorter>
  );
  const columns: Column[] = [
    [sorter("state", "State")],
    [sorter("job", "Job")],
    ["Problem"],
    [sorter("time", "For"), "number"],
    [sorter("ranks", "Ranks"), "number"],
    ["Processes alive", "number"],
    ["Hosts", "number"],
    [sorter("calls", "Calls/s per rank"), "number"],
  ];
  const several = all.some((job) => job.daemon !== "");
  if (several) columns.push(["Daemon"]);
  return (
    <main>
      <h1>Jobs</h1>
      <Stale live={live} />
      <SilentDaemons names={live.value.silent_daemons} />
      {idle !== "" && (
        <p class={`sentence sentence-${worstOf(all)}`} role="status">
          {idle}
        </p>
      )}
      <p class="soft">
        {all.length > 0 && `${counts(all)}; `}
        {plural(live.value.agents, "agent")} connected, release {live.value.rollcall_version}
      </p>
      <Silences />
      {total > all.length && (
        <p class="soft">
          This page shows {count(all.length)} of {plural(total, "job")}.{" "}
          <a href={formatAddress(["history"])}>Incidents</a> lists the hangs of all jobs.
        </p>
      )}
      {total === 0 ? (
        <p>
          No job has connected yet. Start one with{" "}
          <code>rollcall run --daemon=HOST:PORT COMMAND…</code>, or start{" "}
          <code>rollcall-agent</code> on its hosts.
        </p>
      ) : (
        <>
          <Filters jobs={all} query={query} />
          <Table label="jobs" kind="stacked" columns={columns}>
            {jobs.slice(0, most).map((job) => (
              <Row key={`${job.tenant}/${job.name}`} job={job} now={now} daemon={several} />
            ))}
          </Table>
          {below}
          {jobs.length === 0 && <p role="status">No job matches.</p>}
        </>
      )}
      <Pager
        offset={offset}
        limit={kLimit}
        total={total}
        onChange={(next) => setParameters({ offset: next === 0 ? "" : String(next) })}
      />
      <Unrecorded jobs={live.value.unrecorded} now={now} />
    </main>
  );
}
