// SPDX-License-Identifier: Apache-2.0
// The stacks of an incident's processes, and a button that takes them again.
import { useContext, useState } from "preact/hooks";
import { type JobAddress, takeStacks } from "../api";
import { frame, plural } from "../format";
import { HasPages, HostLink, RankLink } from "../links";
import type {
  ChildProcess,
  Incident,
  ProcessStack,
  PythonException,
  StacksResponse,
  ThreadStack,
} from "../messages";
import { Time } from "../parts";
import { formatRanks } from "../ranks";
import { useMayAct } from "../session";
import { Icicle } from "./icicle";

const kMostStacksAgain = 32;

// The position of the main thread: the innermost Python line, else the innermost names.
export function stackTop(incident: Incident, rank: number): string {
  const frames =
    incident.stacks
      .filter((stack) => stack.culprit && stack.rank === rank && stack.threads.length > 0)
      .pop()?.threads[0]?.frames ?? [];
  const python = frames.find((one) => one.python);
  if (python !== undefined) return `${python.function} ${python.file}:${python.line}`;
  return frames
    .filter((one) => one.function !== "")
    .slice(0, 3)
    .map((one) => one.function)
    .join(" ← ");
}

function child(one: ChildProcess): string {
  return `${one.pid} “${one.name}” (${one.state}, ${one.cpu_seconds.toFixed(2)} s of CPU time)`;
}

function exception(one: PythonException): string {
  const text = one.text === "" ? one.type : `${one.type}: ${one.text}`;
  return one.at === "" ? text : `${text}, raised at ${one.at}`;
}

// What a thread waits for: a barrier of JAX's coordination service, or a key of a store.
function awaited(thread: ThreadStack): string {
  return thread.frames.some((one) => one.function.includes("WaitAtBarrier"))
    ? `at barrier “${thread.awaited_key}”`
    : `for key “${thread.awaited_key}” of the store`;
}

function Thread({ thread }: { thread: ThreadStack }) {
  return (
    <div>
      <h4>
        thread {thread.tid}
        {thread.name !== "" && ` “${thread.name}”`}, {thread.state}
        {thread.wait_channel !== "" && ` in ${thread.wait_channel}`}
        {thread.python_lock !== "" && `, ${thread.python_lock} Python's lock`}
        {thread.keeps_process && ", no daemon"}
        {thread.handles && `, handles ${exception(thread.handles)}`}
        {thread.awaited_key !== "" && `, waits ${awaited(thread)}`}
        {thread.other_end &&
          `, waits at a ${thread.other_end.kind} for pid ${thread.other_end.pids.join(", ")}`}
      </h4>
      {thread.note !== "" && <p class="soft">{thread.note}</p>}
      <pre tabIndex={0}>
        {thread.frames.map((one, index) => `#${String(index).padEnd(3)}${frame(one)}`).join("\n")}
      </pre>
    </div>
  );
}

// `job`: for links to the rank and the host.
export function Stack({
  stack,
  job,
  isOpen = stack.culprit,
}: {
  stack: ProcessStack;
  job: JobAddress;
  isOpen?: boolean;
}) {
  const [open, setOpen] = useState(isOpen);
  const hasPages = useContext(HasPages);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        rank {stack.rank}, {stack.host}, pid {stack.pid}
        {stack.culprit && <b>, culprit</b>}, <Time at={stack.taken_at} />
        {stack.method !== "" && `, by ${stack.method}`}
      </summary>
      {open && hasPages && (
        <p class="soft">
          {stack.rank >= 0 && (
            <RankLink job={job} rank={stack.rank}>
              Page of rank {stack.rank}
            </RankLink>
          )}
          , host <HostLink host={stack.host} />
        </p>
      )}
      {open && stack.error !== "" && <p>{stack.error}</p>}
      {open && stack.children.length > 0 && (
        <p>Has started {stack.children.map(child).join(", ")}</p>
      )}
      {open && stack.threads.map((one) => <Thread key={one.tid} thread={one} />)}
      {open &&
        stack.children
          .filter((one) => one.threads.length > 0)
          .map((one) => (
            <section key={one.pid} aria-label={`child ${one.pid}`}>
              <h4>child {child(one)}</h4>
              {one.threads.map((thread) => (
                <Thread key={thread.tid} thread={thread} />
              ))}
            </section>
          ))}
    </details>
  );
}

// For operators: the same button for the first ranks of an incident's root cause.
export function StacksAgain({ incident }: { incident: Incident }) {
  const verdict = incident.verdicts[0];
  const ranks = [
    ...(verdict?.culprits.map((one) => one.rank) ?? []),
    ...(verdict?.waiting_ranks ?? []),
  ].slice(0, kMostStacksAgain);
  const job = { job: incident.job, tenant: incident.tenant, attempt: String(incident.attempt) };
  return <StacksNow job={job} ranks={ranks} />;
}

// For operators: a button that takes the stacks of these ranks, and what it took.
export function StacksNow({ job, ranks }: { job: JobAddress; ranks: number[] }) {
  const [state, setState] = useState<{ busy: boolean; problem: string; got?: StacksResponse }>({
    busy: false,
    problem: "",
  });
  const mayAct = useMayAct();
  const take = async (): Promise<void> => {
    setState({ busy: true, problem: "" });
    try {
      setState({
        busy: false,
        problem: "",
        got: await takeStacks<StacksResponse>(job, formatRanks(ranks)),
      });
    } catch (error) {
      setState({ busy: false, problem: error instanceof Error ? error.message : String(error) });
    }
  };
  if (!mayAct) return null;
  return (
    <>
      <p>
        <button
          type="button"
          disabled={state.busy || ranks.length === 0}
          onClick={() => void take()}
        >
          {state.busy ? "Taking stacks …" : "Take stacks now"}
        </button>{" "}
        <span class="soft">of {plural(ranks.length, "rank")}; the job keeps running</span>
      </p>
      {state.problem !== "" && (
        <p class="problem" role="alert">
          {state.problem}
        </p>
      )}
      {state.got !== undefined && (
        <div class="card">
          <h3>
            Taken <Time at={state.got.now} />
          </h3>
          {state.got.tree !== undefined &&
            state.got.tree.nodes.length > 1 &&
            state.got.stacks.length > 1 && <Icicle job={job} tree={state.got.tree} />}
          {state.got.stacks.map((stack) => (
            <Stack
              key={`${stack.host} ${stack.pid}`}
              stack={stack}
              job={job}
              isOpen={ranks.length === 1}
            />
          ))}
        </div>
      )}
    </>
  );
}
