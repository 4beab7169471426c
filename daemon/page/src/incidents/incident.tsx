// SPDX-License-Identifier: Apache-2.0
// One incident: the verdict first, then the evidence.
import { useState } from "preact/hooks";
import { formatAddress } from "../address";
import { incidentPath, reportPath } from "../api";
import { count, culprit, versions } from "../format";
import { Hosts } from "../hosts/hosts";
import { Sentence } from "../links";
import { useLive } from "../live";
import type { Incident as Message } from "../messages";
import { copyText, IncidentLink, JobLink, Section, Stale, State, Time, Waiting } from "../parts";
import { culpritRanks, rankHours, rankWords } from "../totals";
import { GpuDumps } from "./gpu_dumps";
import { Icicle } from "./icicle";
import { PeoplesWords, Taken } from "./incident_actions";
import { Recurrence } from "./incident_groups";
import { RunbookLink } from "./runbook";
import { Stack, StacksAgain } from "./stacks";
import { VerdictView } from "./verdict";

const kCulpritsCopied = 8;

// The incident as text for a chat message.
function incidentText(incident: Message): string {
  const verdict = incident.verdicts[0];
  if (verdict === undefined) return incident.id;
  const since = incident.opened_at !== undefined ? `, since ${incident.opened_at}` : "";
  const culprits = culpritRanks(verdict);
  const more = culprits.total - kCulpritsCopied;
  return [
    `${incident.job}: ${verdict.summary}`,
    `cause ${verdict.cause}, ${verdict.certainty}; incident ${incident.id}, ` +
      `${incident.state}${since}`,
    ...verdict.culprits
      .slice(0, kCulpritsCopied)
      .map((one) => `  ${culprit(one)}${one.code !== "" ? `: ${one.code}` : ""}`),
    ...(more > 0 ? [`  and ${count(more)} more; all: ${rankWords(culprits, 12)}`] : []),
    ...verdict.advice.map((advice) => `  [${advice.id}] ${advice.text}`),
    ...(incident.report_path === "" ? [] : [`report: ${incident.report_path}`]),
  ].join("\n");
}

function Actions({ incident }: { incident: Message }) {
  const [status, setStatus] = useState("");
  const copy = async (): Promise<void> => {
    setStatus(
      (await copyText(incidentText(incident))) ? "Copied" : "The browser does not permit copying",
    );
    setTimeout(() => setStatus(""), 3000);
  };
  return (
    <p class="actions">
      <button type="button" onClick={() => void copy()}>
        Copy as text
      </button>
      <a class="button" href={reportPath(incident.id)} download>
        Download the report
      </a>
      <a
        class="button"
        href={formatAddress(["history"], { job: incident.job, tenant: incident.tenant })}
      >
        Other incidents of this job
      </a>
      <span role="status">{status}</span>
    </p>
  );
}

// The row of hangs that this one is in.
function Repeated({ incident }: { incident: Message }) {
  const repeat = incident.repeat;
  if (repeat === undefined || repeat.number < 2) return null;
  const other = repeat.newest || repeat.first;
  return (
    <p class="soft">
      Flapping: {repeat.sentence}; {repeat.newest === "" ? "the first" : "the newest"}:{" "}
      <IncidentLink id={other} />
      {repeat.holds_back && "; further alerts of the job were held back from here on"}
    </p>
  );
}

function Cost({ incident }: { incident: Message }) {
  const root = incident.verdicts[0];
  return (
    <p class="soft">
      {incident.lost_rank_seconds > 0 &&
        `${rankHours(incident.lost_rank_seconds)} rank-hours lost${incident.closed_at === undefined ? " so far" : ""}. `}
      {root !== undefined && <RunbookLink cause={root.cause} />}
    </p>
  );
}

export function IncidentView({ incident, frozen }: { incident: Message; frozen: boolean }) {
  const [first, ...others] = incident.verdicts;
  const job = { job: incident.job, tenant: incident.tenant, attempt: String(incident.attempt) };
  const stacks = [...incident.stacks].sort(
    (a, b) => Number(b.culprit) - Number(a.culprit) || a.rank - b.rank,
  );
  return (
    <>
      <p class="soft">
        <State state={incident.state} /> incident {incident.id} of{" "}
        {frozen ? incident.job : <JobLink job={incident.job} tenant={incident.tenant} />}
        {incident.attempt > 0 && ` attempt ${incident.attempt}`}
        {incident.opened_at !== undefined && (
          <>
            , suspected <Time at={incident.opened_at} />
          </>
        )}
        {incident.confirmed_at !== undefined && (
          <>
            , confirmed <Time at={incident.confirmed_at} />
          </>
        )}
        {incident.closed_at !== undefined && (
          <>
            , closed <Time at={incident.closed_at} />
            {incident.went_on_in !== undefined && `; attempt ${incident.went_on_in} went on`}
          </>
        )}
      </p>
      <h1 class={`sentence sentence-${incident.state}`}>
        {first === undefined ? incident.id : <Sentence job={job} text={first.summary} />}
      </h1>
      {!frozen && <Taken incident={incident} />}
      {!frozen && <Repeated incident={incident} />}
      <Recurrence group={frozen ? undefined : incident.recurrence} />
      {!frozen && <Cost incident={incident} />}
      {!frozen && <Actions incident={incident} />}
      {first !== undefined && <VerdictView verdict={first} first incident={incident} />}
      {others.length > 0 && (
        <Section title="Other findings">
          {others.map((verdict, index) => (
            <VerdictView key={index} verdict={verdict} first={false} incident={incident} />
          ))}
        </Section>
      )}
      {!frozen && <PeoplesWords incident={incident} />}
      <Hosts incident={incident} />
      <GpuDumps job={job} incident={incident} />
      <Section title="Stacks" id="stacks">
        {incident.stack_tree !== undefined && incident.stack_tree.nodes.length > 1 ? (
          <Icicle job={job} tree={incident.stack_tree} />
        ) : (
          <p class="soft">No stacks{frozen ? "" : " yet"}.</p>
        )}
        {!frozen && incident.closed_at === undefined && <StacksAgain incident={incident} />}
        {stacks.map((stack, index) => (
          <Stack key={index} stack={stack} job={job} />
        ))}
      </Section>
      {incident.versions.length > 0 && <p class="soft">Versions: {versions(incident.versions)}</p>}
      {incident.alert_held_back && (
        <p class="soft">Alert held back: the job has reached its limit of alerts an hour.</p>
      )}
      {incident.report_path !== "" && <p class="soft">Report: {incident.report_path}</p>}
    </>
  );
}

export function Incident({ id }: { id: string }) {
  const live = useLive<Message>(incidentPath(id));
  if (live.value === undefined)
    return (
      <main>
        <h1>{id}</h1>
        <Waiting live={live} what="the incident" />
      </main>
    );
  return (
    <main>
      <Stale live={live} />
      <IncidentView incident={live.value} frozen={false} />
    </main>
  );
}
