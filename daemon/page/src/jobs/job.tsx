// SPDX-License-Identifier: Apache-2.0
// One job: the sentence, the maps, the calls, the communicators, the processes.
import { useMemo, useState } from "preact/hooks";
import { formatAddress, setParameters, useAddress } from "../address";
import { incidentPath, type JobAddress, jobPath } from "../api";
import { count, plural, seconds } from "../format";
import { Referral } from "../incidents/referral";
import { CommunicatorLink, HostLinks, RankPages, Sentence as Summary } from "../links";
import { useLive } from "../live";
import type { AttemptStatus, Incident, JobStatus, JobView } from "../messages";
import { IncidentLink, Section, Stale, State, Time, Waiting } from "../parts";
import { formatRanks, parseRanks } from "../ranks";
import { Timeline } from "../timeline/timeline";
import { Communicators } from "./job_communicators";
import { endedHung, stateWords } from "./jobs";
import { Matrix } from "./matrix";
import { isMismatch, type Mismatch, mismatchOf } from "./mismatch";
import { Moment, NoMoment, PastNotice } from "./moment";
import { Processes } from "./processes";
import { Rate } from "./rate";
import { severity } from "./states";

const kMostLanes = 16;
const kHostsAtFirst = 8;
const kMostHosts = 64;

function Sentence({ address, view }: { address: JobAddress; view: JobView }) {
  const job = view.status;
  const waits = job.communicators.filter((comm) => comm.waiting > 0 && comm.waited_seconds >= 2);
  if (job.summary !== "") {
    return (
      <p class={`sentence sentence-${job.state}`} role="status">
        <Summary job={address} text={job.summary} />{" "}
        {view.incident !== "" && <IncidentLink id={view.incident}>the incident</IncidentLink>}
      </p>
    );
  }
  if (endedHung(job)) {
    return (
      <p class="sentence sentence-hung" role="status">
        The job ended while it hung: <Summary job={address} text={job.last_incident!.summary} />{" "}
        <IncidentLink id={job.last_incident!.id}>the incident</IncidentLink>
      </p>
    );
  }
  if (job.waits_for !== undefined)
    return (
      <p class="sentence sentence-waiting" role="status">
        <Referral to={job.waits_for} />
      </p>
    );
  if (job.state === "ended")
    return (
      <p class="sentence">
        All processes have ended
        {job.processes_died > 0 && `, ${count(job.processes_died)} of them died`}.
      </p>
    );
  if (waits.length > 0) {
    const longest = waits[0]!;
    return (
      <p class="sentence" role="status">
        {plural(longest.waiting, "rank")} {longest.waiting === 1 ? "waits" : "wait"} on{" "}
        <CommunicatorLink job={address} id={longest.id}>
          {longest.name || longest.id}
        </CommunicatorLink>{" "}
        in {longest.operation || "a call"} for {seconds(longest.waited_seconds)}; this is not a hang
        yet.
      </p>
    );
  }
  return (
    <p class="sentence sentence-running" role="status">
      No problem: {job.calls_per_second.toFixed(1)} calls per second on each rank.
    </p>
  );
}

function ending(attempt: AttemptStatus) {
  if (attempt.state !== "ended") {
    return `${attempt.state}, ${attempt.processes_alive} of ${attempt.processes} processes alive`;
  }
  return (
    <>
      ended{" "}
      {attempt.ended_at !== undefined && (
        <>
          <Time at={attempt.ended_at} />,{" "}
        </>
      )}
      {attempt.processes_died} of {plural(attempt.processes, "process", "processes")} died
    </>
  );
}

const kAttemptsAtFirst = 5;

// Links to the other attempts, and how each ended.
function Attempts({ job }: { job: JobStatus }) {
  const [all, setAll] = useState(false);
  if (job.attempts.length === 0) return null;
  const shown = all ? job.attempts : job.attempts.slice(0, kAttemptsAtFirst);
  return (
    <ul class="attempts soft">
      {shown.map((attempt) => (
        <li key={attempt.attempt}>
          <a
            href={formatAddress(["job", job.name], {
              tenant: job.tenant,
              attempt: String(attempt.attempt),
            })}
          >
            attempt {attempt.attempt}
          </a>
          : {ending(attempt)}
          {attempt.last_incident !== undefined && (
            <>
              ; last incident{" "}
              <IncidentLink id={attempt.last_incident.id}>
                {attempt.last_incident.cause}
              </IncidentLink>
            </>
          )}
        </li>
      ))}
      {shown.length < job.attempts.length && (
        <li>
          <button type="button" onClick={() => setAll(true)}>
            Show {job.attempts.length}
          </button>
        </li>
      )}
    </ul>
  );
}

// The ranks of the incident, else those that differ, else the first ones.
function usualRanks(view: JobView): string {
  if (view.culprits.length > 0) {
    const others: number[] = [];
    for (const map of view.maps) {
      for (let rank = 0; rank < map.states.length && others.length < 3; ++rank) {
        if (map.states[rank] === "w" && !others.includes(rank)) others.push(rank);
      }
    }
    return formatRanks([...view.culprits.slice(0, 5), ...others]);
  }
  const odd: number[] = [];
  for (const map of view.maps) {
    for (let rank = 0; rank < map.states.length && odd.length < 4; ++rank) {
      if (severity(map.states[rank]!) > severity("w")) odd.push(rank);
    }
  }
  const ranks = view.maps[0]?.states.length ?? 0;
  return formatRanks([...odd, ...Array.from({ length: Math.min(4, ranks) }, (_, i) => i)]);
}

function HostsOfJob({ hosts }: { hosts: string[] }) {
  if (hosts.length === 0) return null;
  const links = <HostLinks hosts={hosts.slice(0, kMostHosts)} />;
  if (hosts.length <= kHostsAtFirst)
    return (
      <p class="soft">
        {hosts.length === 1 ? "Host " : "Hosts "}
        {links}
      </p>
    );
  const more = hosts.length - kMostHosts;
  return (
    <details>
      <summary>{plural(hosts.length, "host")}</summary>
      <p>
        {links}
        {more > 0 && ` and ${count(more)} more, which the processes below name`}
      </p>
    </details>
  );
}

// Of the open incident, which is asked for only if its cause is a mismatch.
function useMismatch(view: JobView | undefined): Mismatch | undefined {
  const last = view?.status.last_incident;
  const isOpen = view !== undefined && !view.is_kept && view.incident === last?.id;
  const path = isOpen && isMismatch(last?.cause) ? incidentPath(view.incident) : "";
  const incident = useLive<Incident>(path).value;
  return useMemo(() => mismatchOf(incident), [incident]);
}

export function Job({ name }: { name: string }) {
  const { query } = useAddress();
  const address: JobAddress = {
    job: name,
    tenant: query.get("tenant") ?? "",
    attempt: query.get("attempt") ?? "",
  };
  const at = query.get("at") ?? "";
  const live = useLive<JobView>(jobPath(address, at));
  const view = live.value;
  const mismatch = useMismatch(view);
  const usual = useMemo(() => (view === undefined ? "" : usualRanks(view)), [view]);
  if (view === undefined)
    return (
      <main>
        <h1>{name}</h1>
        {at !== "" && live.problem !== "" ? (
          <NoMoment problem={live.problem} />
        ) : (
          <Waiting live={live} what="the job" />
        )}
      </main>
    );
  const job = view.status;
  const ranks = query.get("ranks") ?? usual;
  return (
    <main>
      <h1>
        {job.name}
        {(job.attempt > 0 || job.attempts.length > 0) && ` attempt ${job.attempt}`}{" "}
        <State state={stateWords(job)} />
      </h1>
      <Stale live={live} />
      <Moment view={view} at={at} />
      <PastNotice view={view} />
      <Sentence address={address} view={view} />
      {job.warnings.map((warning) => (
        <p class="warning">
          <Summary job={address} text={warning} />
        </p>
      ))}
      <Attempts job={job} />
      <p class="soft">
        {plural(job.ranks, "rank")}, {job.processes_alive} of{" "}
        {plural(job.processes, "process", "processes")} alive on {plural(job.hosts.length, "host")},{" "}
        {plural(job.communicators_total, "communicator")}
        {job.since !== "" && (
          <>
            , since <Time at={job.since} />
          </>
        )}
        {job.last_incident !== undefined && (
          <>
            ; last incident <IncidentLink id={job.last_incident.id} />
          </>
        )}
        ;{" "}
        <a href={formatAddress(["history"], { job: name, tenant: job.tenant })}>
          all of its incidents
        </a>
      </p>
      <HostsOfJob hosts={job.hosts} />
      <Section title="Ranks">
        <Matrix
          job={address}
          view={view}
          mismatch={mismatch}
          onChoose={(chosen) => {
            setParameters({ ranks: formatRanks(chosen) });
            document.getElementById("calls")?.scrollIntoView({ behavior: "smooth" });
          }}
        />
      </Section>
      <Section
        title="Last calls"
        id="calls"
        aside={
          <label class="filter">
            Of ranks{" "}
            <input
              key={ranks}
              defaultValue={ranks}
              size={16}
              onChange={(event) =>
                setParameters({
                  ranks: formatRanks(parseRanks(event.currentTarget.value, kMostLanes)),
                })
              }
            />
          </label>
        }
      >
        <RankPages job={address} ranks={parseRanks(ranks, kMostLanes)} />
        <Timeline
          job={address}
          ranks={ranks}
          mismatch={mismatch}
          moment={view.is_kept ? Date.parse(at) / 1000 : undefined}
          onMoment={(time) => setParameters({ at: new Date(time * 1000).toISOString() })}
        />
      </Section>
      {!view.is_kept && (
        <Section title="Calls per second of an average rank">
          <Rate values={view.calls_per_second} now={view.now} />
        </Section>
      )}
      <Section title="Communicators">
        <Communicators
          job={address}
          list={job.communicators}
          total={job.communicators_total}
          mismatch={mismatch}
        />
      </Section>
      <Section title="Processes">
        <Processes job={address} />
      </Section>
    </main>
  );
}
