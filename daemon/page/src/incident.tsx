// SPDX-License-Identifier: Apache-2.0
// One incident: the verdict first, then the evidence.
import { useState } from "preact/hooks";
import { addressOf } from "./address";
import { incidentPath, reportPath, takeStacks } from "./api";
import { call, communicator, count, culprit, frame, graph, plural, seconds, step } from "./format";
import { Icicle } from "./icicle";
import { useLive } from "./live";
import type { Call, Incident as Message, ProcessStack, StacksResponse, Verdict } from "./messages";
import { copyText, JobLink, Section, Stale, State, Time, Waiting } from "./parts";
import { formatRanks } from "./ranks";
import { Waits } from "./waits";

const kMostStacksAgain = 32;

// The incident as text for a chat message.
function incidentText(incident: Message): string {
  const verdict = incident.verdicts[0];
  if (verdict === undefined) return incident.id;
  return [
    `${incident.job}: ${verdict.summary}`,
    `cause ${verdict.cause}, ${verdict.certainty}; incident ${incident.id}, ${incident.state}${incident.opened_at !== undefined ? `, since ${incident.opened_at}` : ""}`,
    ...verdict.culprits.slice(0, 8).map((one) => `  ${culprit(one)}${one.code !== "" ? `: ${one.code}` : ""}`),
    ...verdict.advice.map((advice) => `  [${advice.id}] ${advice.text}`),
    ...(incident.report_path === "" ? [] : [`report: ${incident.report_path}`]),
  ].join("\n");
}

function Facts({ facts }: { facts: [string, preact.ComponentChildren][] }) {
  return <dl class="facts">{facts.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false)
    .map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

// The position of the main thread: the innermost Python line, else the innermost names.
function stackTop(incident: Message, rank: number): string {
  const frames = incident.stacks.filter((stack) => stack.culprit && stack.rank === rank && stack.threads.length > 0).pop()?.threads[0]?.frames ?? [];
  const python = frames.find((one) => one.python);
  if (python !== undefined) return `${python.function} ${python.file}:${python.line}`;
  return frames.filter((one) => one.function !== "").slice(0, 3).map((one) => one.function).join(" ← ");
}

function CallCard({ title, who, stands, made, code, differs }: {
  title: string; who: string; stands: string; made: Call | undefined; code: string; differs: string[];
}) {
  const mark = (field: string, value: string) => differs.includes(field) ? <mark>{value}</mark> : value;
  return (
    <div class="card">
      <h3>{title}</h3>
      <p>{who}</p>
      {made !== undefined && made.operation !== "" && <Facts facts={[
        ["call", mark("operation", made.operation)],
        ["position", count(made.position)],
        ["data type", made.dtype === "" ? "" : mark("dtype", made.dtype)],
        [made.dtype === "" ? "bytes" : "count",
          made.dtype === "" && made.count === 0 ? "" : mark("count", count(made.count))],
        ["for PyTorch", made.logical],
        ["shape", made.shape],
        ["CUDA graph", graph(made.graph)],
        ["reduction", made.reduction === "" ? "" : mark("reduction", made.reduction)],
        ["root", made.root < 0 ? "" : mark("root", String(made.root))],
      ]} />}
      {code !== "" && <p class="code">{code}</p>}
      {stands !== "" && <p>now in <span class="code">{stands}</span></p>}
    </div>
  );
}

function SideBySide({ verdict, incident }: { verdict: Verdict; incident: Message }) {
  const first = verdict.culprits[0];
  return (
    <div class="cards">
      <CallCard title={verdict.culprits.length === 1 ? "Culprit" : `Culprits (${verdict.culprits.length})`}
        who={verdict.culprits.slice(0, 6).map(culprit).join("; ") + (verdict.culprits.length > 6 ? "; …" : "")}
        stands={first === undefined ? "" : stackTop(incident, first.rank)}
        made={first?.call} code={first?.code ?? ""} differs={verdict.mismatched_fields} />
      <CallCard title={verdict.waiting_ranks.length === 0 ? "The others" : `Waiting (${verdict.waiting_ranks.length})`}
        who={verdict.waiting_ranks.length === 0 ? "" : `ranks ${formatRanks(verdict.waiting_ranks, 12)}${verdict.waited_seconds > 0 ? `, for ${seconds(verdict.waited_seconds)}` : ""}`}
        stands="" made={verdict.call} code={verdict.call?.code ?? ""} differs={verdict.mismatched_fields} />
    </div>
  );
}

function Histories({ verdict }: { verdict: Verdict }) {
  if (verdict.histories.length === 0) return null;
  const cell = (made: Call | undefined) => made === undefined || made.operation === "" ? <td class="soft">(no such call)</td>
    : <td>#{count(made.position)} {call(made)}{made.code !== "" && <div class="code">{made.code}</div>}</td>;
  return (
    <>
      <h3>The two histories, call by call</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="histories"><table class="histories">
        <thead><tr><th></th><th>the others</th><th>the culprits</th></tr></thead>
        <tbody>{verdict.histories.map((line, index) =>
          <tr key={index} class={line.differs ? "differs" : ""}><td>{line.differs ? "≠" : "="}</td>{cell(line.others)}{cell(line.culprits)}</tr>)}</tbody>
      </table></div>
    </>
  );
}

function List({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return <><h3>{title}</h3><ul>{lines.map((line, index) => <li key={index}>{line}</li>)}</ul></>;
}

function VerdictView({ verdict, first, incident }: { verdict: Verdict; first: boolean; incident: Message }) {
  return (
    <>
      {!first && <h3 class="also">{verdict.is_consequence ? "A consequence: " : "Also found: "}{verdict.summary}</h3>}
      <Facts facts={[
        ["cause", verdict.cause], ["certainty", verdict.certainty],
        ["communicator", communicator(verdict.communicator)],
        ["call", verdict.call !== undefined && verdict.call.operation !== "" ? `#${count(verdict.call.position)} ${call(verdict.call)}` : ""],
        ["differs in", verdict.mismatched_fields.join(", ")],
        ["how", verdict.divergence],
        ["waited", verdict.waited_seconds > 0 ? seconds(verdict.waited_seconds) : ""],
        ["step", step(verdict)],
      ]} />
      <SideBySide verdict={verdict} incident={incident} />
      <Histories verdict={verdict} />
      {verdict.chain.length > 0 && <><h3>Who waits for whom</h3><Waits chain={verdict.chain} /></>}
      {verdict.advice.length > 0 && <><h3>What to do</h3><ul class="advice">{verdict.advice.map((advice) => <li key={advice.id}><b>{advice.id}</b> {advice.text}</li>)}</ul></>}
      <List title="Evidence" lines={verdict.evidence} />
      <List title="Missing evidence" lines={verdict.missing_evidence} />
    </>
  );
}

function Stack({ stack }: { stack: ProcessStack }) {
  const [open, setOpen] = useState(stack.culprit);
  return (
    <details open={stack.culprit} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>rank {stack.rank}, {stack.host}, pid {stack.pid}{stack.culprit && <b>, culprit</b>}, <Time at={stack.taken_at} />{stack.method !== "" && `, by ${stack.method}`}</summary>
      {open && stack.error !== "" && <p>{stack.error}</p>}
      {open && stack.threads.map((thread) => (
        <div key={thread.tid}>
          <h4>thread {thread.tid}{thread.name !== "" && ` “${thread.name}”`}, {thread.state}{thread.wait_channel !== "" && ` in ${thread.wait_channel}`}{thread.python_lock !== "" && `, ${thread.python_lock} Python's lock`}</h4>
          {thread.note !== "" && <p class="soft">{thread.note}</p>}
          <pre tabIndex={0}>{thread.frames.map((one, index) => `#${String(index).padEnd(3)}${frame(one)}`).join("\n")}</pre>
        </div>))}
    </details>
  );
}

function StacksAgain({ incident }: { incident: Message }) {
  const [state, setState] = useState<{ busy: boolean; problem: string; got?: StacksResponse }>({ busy: false, problem: "" });
  const verdict = incident.verdicts[0];
  const ranks = [...(verdict?.culprits.map((one) => one.rank) ?? []), ...(verdict?.waiting_ranks ?? [])].slice(0, kMostStacksAgain);
  const take = async (): Promise<void> => {
    setState({ busy: true, problem: "" });
    try {
      setState({ busy: false, problem: "", got: await takeStacks<StacksResponse>(incident.job, formatRanks(ranks)) });
    } catch (error) {
      setState({ busy: false, problem: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <>
      <p><button disabled={state.busy || ranks.length === 0} onClick={() => void take()}>{state.busy ? "taking stacks …" : "take stacks now"}</button> <span class="soft">of {plural(ranks.length, "rank")}; the job keeps running</span></p>
      {state.problem !== "" && <p class="problem" role="alert">{state.problem}</p>}
      {state.got !== undefined && <div class="card">
        <h3>Taken <Time at={state.got.now} /></h3>
        {state.got.tree !== undefined && state.got.tree.nodes.length > 1 && <Icicle tree={state.got.tree} />}
        {state.got.stacks.map((stack) => <Stack key={`${stack.host} ${stack.pid}`} stack={stack} />)}
      </div>}
    </>
  );
}

function Actions({ incident }: { incident: Message }) {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    setSaid((await copyText(incidentText(incident))) ? "copied" : "the browser does not permit copying");
    setTimeout(() => setSaid(""), 3000);
  };
  return (
    <p class="actions">
      <button onClick={() => void copy()}>copy as text</button>
      <a class="button" href={reportPath(incident.id)} download>download the report</a>
      <a class="button" href={addressOf(["history"], { job: incident.job })}>other incidents of this job</a>
      <span role="status">{said}</span>
    </p>
  );
}

export function IncidentView({ incident, frozen }: { incident: Message; frozen: boolean }) {
  const [first, ...others] = incident.verdicts;
  const stacks = [...incident.stacks].sort((a, b) => Number(b.culprit) - Number(a.culprit) || a.rank - b.rank);
  return (
    <>
      <p class="soft"><State state={incident.state} /> incident {incident.id} of {frozen ? incident.job : <JobLink job={incident.job} />}
        {incident.opened_at !== undefined && <>, suspected <Time at={incident.opened_at} /></>}
        {incident.confirmed_at !== undefined && <>, confirmed <Time at={incident.confirmed_at} /></>}
        {incident.closed_at !== undefined && <>, closed <Time at={incident.closed_at} /></>}</p>
      <h1 class={`sentence sentence-${incident.state}`}>{first?.summary ?? incident.id}</h1>
      {!frozen && <Actions incident={incident} />}
      {first !== undefined && <VerdictView verdict={first} first incident={incident} />}
      {others.length > 0 && <Section title="Other findings">{others.map((verdict, index) => <VerdictView key={index} verdict={verdict} first={false} incident={incident} />)}</Section>}
      <Section title="Stacks" id="stacks">
        {incident.stack_tree !== undefined && incident.stack_tree.nodes.length > 1 ? <Icicle tree={incident.stack_tree} /> : <p class="soft">No stacks{frozen ? "" : " yet"}.</p>}
        {!frozen && incident.closed_at === undefined && <StacksAgain incident={incident} />}
        {stacks.map((stack, index) => <Stack key={index} stack={stack} />)}
      </Section>
      {incident.report_path !== "" && <p class="soft">report: {incident.report_path}</p>}
    </>
  );
}

export function Incident({ id }: { id: string }) {
  const live = useLive<Message>(incidentPath(id));
  if (live.value === undefined) return <main><h1>{id}</h1><Waiting live={live} what="the incident" /></main>;
  return <main><Stale live={live} /><IncidentView incident={live.value} frozen={false} /></main>;
}
