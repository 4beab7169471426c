// SPDX-License-Identifier: Apache-2.0
// Distributed jobs that run without Rollcall's library. An operator may have one looked at: nothing
// is taken from it before.
import { useState } from "preact/hooks";
import { diagnose } from "../api";
import { plural, seconds } from "../format";
import { HostLinks } from "../links";
import type { DiagnosedLog, DiagnoseResponse, Diagnosis, UnrecordedJob } from "../messages";
import { type Column, Section, Table } from "../parts";
import { useMayAct } from "../session";

const kMostShown = 100;

function List({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {lines.map((line) => (
          <li>{line}</li>
        ))}
      </ul>
    </>
  );
}

// As many as `rollcall diagnose` shows.
const kMostLogs = 2;
const kMostLogLines = 6;
const kMostRanksOfLog = 8;

function ranksInShort(ranks: number[]): string {
  const named = ranks.slice(0, kMostRanksOfLog).join(", ");
  const more = ranks.length - kMostRanksOfLog;
  return more > 0 ? `${named} and ${more} more` : named;
}

function Logs({ logs }: { logs: DiagnosedLog[] }) {
  if (logs.length === 0) return null;
  return (
    <>
      <h3>Where the log ends</h3>
      {logs.slice(0, kMostLogs).map((log) => (
        <>
          <p>
            {log.ranks.length === 1 ? "rank" : "ranks"} {ranksInShort(log.ranks)} on {log.host}:{" "}
            {log.path}
          </p>
          <pre>{log.lines.slice(-kMostLogLines).join("\n")}</pre>
        </>
      ))}
    </>
  );
}

// What the look found: the same words as those of `rollcall diagnose`.
function Finding({ diagnosis }: { diagnosis: Diagnosis }) {
  const verdict = diagnosis.incident?.verdicts[0];
  const isOpen = diagnosis.outcome === "cannot_tell";
  if (verdict === undefined) {
    const words = isOpen ? "Cannot tell whether it hangs" : "No hang found";
    return (
      <>
        <p role="status">
          {words}: {diagnosis.why}
        </p>
        <List title="Not all was seen" lines={diagnosis.unseen} />
      </>
    );
  }
  return (
    <>
      {isOpen && <p role="status">Cannot tell whether it hangs: {diagnosis.why}</p>}
      <p class={isOpen ? "" : "problem"} role={isOpen ? "note" : "alert"}>
        {verdict.summary} <span class="soft">({verdict.certainty})</span>
      </p>
      <List title="What to do" lines={verdict.advice.map((one) => one.text)} />
      <List title="Evidence" lines={verdict.evidence} />
      <Logs logs={diagnosis.logs} />
      <List title="Not seen" lines={verdict.missing_evidence} />
    </>
  );
}

function Row({ job, now, mayAct }: { job: UnrecordedJob; now: number; mayAct: boolean }) {
  const [found, setFound] = useState<Diagnosis[]>([]);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const look = async (): Promise<void> => {
    setBusy(true);
    setProblem("");
    try {
      setFound((await diagnose<DiagnoseResponse>(job.name, job.tenant)).jobs);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  const ranks = job.world_size > job.ranks ? `${job.ranks} of ${job.world_size}` : `${job.ranks}`;
  return (
    <tr>
      <td class="first">not recorded</td>
      <th scope="row">{job.name}</th>
      <td class="wide">
        {mayAct && (
          <button type="button" disabled={isBusy} onClick={() => void look()}>
            {isBusy ? "Looking …" : "Diagnose"}
          </button>
        )}
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {found.map((one) => (
          <Finding diagnosis={one} />
        ))}
      </td>
      <td class="number" data-label="for">
        {seconds(Math.max(0, (now - Date.parse(job.since ?? "")) / 1000))}
      </td>
      <td class="number" data-label="ranks">
        {ranks}
      </td>
      <td data-label="hosts">
        <HostLinks hosts={job.hosts} />
      </td>
      <td class="number" data-label="user">
        {job.uid ?? ""}
      </td>
    </tr>
  );
}

export function Unrecorded({ jobs, now }: { jobs: UnrecordedJob[]; now: number }) {
  const mayAct = useMayAct();
  if (jobs.length === 0) return null;
  const columns: Column[] = [
    ["State"],
    ["Job"],
    ["Finding"],
    ["For", "number"],
    ["Ranks", "number"],
    ["Hosts"],
    ["User", "number"],
  ];
  return (
    <Section title="Not recorded">
      <p>
        {plural(jobs.length, "distributed job runs", "distributed jobs run")} without Rollcall's
        library. Start the next one with <code>rollcall run COMMAND…</code>. If one hangs now:{" "}
        <code>rollcall diagnose JOB --daemon=HOST:PORT</code>
        {mayAct ? ", or the button." : "."}
      </p>
      <Table label="jobs that are not recorded" kind="stacked" columns={columns}>
        {jobs.slice(0, kMostShown).map((job) => (
          <Row key={`${job.tenant}/${job.name}`} job={job} now={now} mayAct={mayAct} />
        ))}
      </Table>
      {jobs.length > kMostShown && <p class="soft">and {jobs.length - kMostShown} more</p>}
    </Section>
  );
}
