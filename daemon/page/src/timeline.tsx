// SPDX-License-Identifier: Apache-2.0
// The newest calls of chosen ranks: one lane for each rank and communicator. A person zooms, moves and
// asks for details; from then on the timeline holds what it shows until "Live".
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { callsPath, incidentPath, type JobAddress, jobPath } from "./api";
import { colors, prepare } from "./canvas";
import { call as callInWords, count, seconds } from "./format";
import { useClock, useLive } from "./live";
import type { CallSpan, CallsResponse, CommunicatorCalls, Incident, JobView } from "./messages";
import { type Column, Stale, Table, useWidth, Waiting } from "./parts";
import { findStep } from "./step_period";
import { useTheme } from "./theme";
import {
  type Clock,
  duration,
  makeScale,
  pan,
  type Scale,
  type Span,
  ticks,
  timeOfDay,
  toShare,
  toTime,
  zoneName,
  zoom,
} from "./timescale";
import { callName, download, inWindow, toTrace } from "./trace";

const kCalls = 30;
const kHeldCalls = 256; // of each rank and communicator, once the timeline holds them
const kLane = 26;
const kAxis = 22;
const kPad = 8;
const kNear = 3; // pixels by which the pointer may miss a call
const kZoom = 1.5;
const kPan = 0.2;
const kMostAtMoment = 6;

interface Lane {
  rank: number;
  comm: CommunicatorCalls;
  name: string;
}

function makeLanes(response: CallsResponse): Lane[] {
  return response.ranks.flatMap((rank) =>
    rank.communicators
      .filter((comm) => comm.calls.length > 0)
      .map((comm) => ({
        rank: rank.rank,
        comm,
        name: comm.communicator.name || comm.communicator.id.slice(0, 8),
      })),
  );
}

// Whether the call is in progress: on the host, on the GPU, or waiting.
function isOpen(span: CallSpan): boolean {
  return (
    span.returned_seconds === 0 || span.waits || span.gpu === "queued" || span.gpu === "started"
  );
}

function endTime(span: CallSpan, now: number): number {
  return isOpen(span) ? now : span.returned_seconds;
}

// The calls, and the daemon's time when it answered.
interface Shown {
  calls: CallsResponse;
  now: number;
}

// A process that has ended is in no call any more.
function endOf(lane: Lane, now: number): number {
  const ended = lane.comm.ended_seconds;
  return ended > 0 ? Math.min(ended, now) : now;
}

function scaleOf(lanes: Lane[], now: number): Scale {
  const moments = lanes.flatMap((lane) =>
    lane.comm.calls.flatMap((span) =>
      span.returned_seconds > 0
        ? [span.entered_seconds, span.returned_seconds]
        : [span.entered_seconds],
    ),
  );
  const open = lanes.filter((lane) => lane.comm.calls.some(isOpen));
  return makeScale(moments, Math.max(0, ...open.map((lane) => endOf(lane, now))));
}

// A call of a lane, by index.
interface Choice {
  lane: number;
  call: number;
}

// The same, also in a later answer of the daemon, in which times differ by nanoseconds.
interface Chosen {
  rank: number;
  comm: string;
  span: CallSpan;
}

function locate(lanes: Lane[], chosen: Chosen | undefined): Choice | undefined {
  if (chosen === undefined) return undefined;
  const lane = lanes.findIndex(
    (one) => one.rank === chosen.rank && one.comm.communicator.id === chosen.comm,
  );
  const call = (lanes[lane]?.comm.calls ?? []).findIndex(
    ({ call: { position, operation }, entered_seconds }) =>
      position === chosen.span.call.position &&
      operation === chosen.span.call.operation &&
      Math.abs(entered_seconds - chosen.span.entered_seconds) < 5e-6,
  );
  return call < 0 ? undefined : { lane, call };
}

interface Picture {
  lanes: Lane[];
  now: number;
  width: number;
  label: number; // width of the lanes' names
  scale: Scale;
  shown: Span;
  clock: Clock;
  choice: Choice | undefined;
  cursor: number | undefined; // a time
  moment: number | undefined; // that the other views of the page show; none: the present
}

const roomOf = (picture: Picture) => Math.max(picture.width - picture.label - kPad, 1);

function xOf(picture: Picture, time: number): number {
  const low = toShare(picture.scale, picture.shown.from);
  const high = toShare(picture.scale, picture.shown.to);
  const share = (toShare(picture.scale, time) - low) / Math.max(high - low, 1e-12);
  return picture.label + share * roomOf(picture);
}

function timeAt(picture: Picture, x: number): number {
  const low = toShare(picture.scale, picture.shown.from);
  const high = toShare(picture.scale, picture.shown.to);
  const share = Math.min(Math.max((x - picture.label) / roomOf(picture), 0), 1);
  return toTime(picture.scale, low + share * (high - low));
}

// "12.25 s ago", or the time of the day. `step` seconds matter.
function say(time: number, step: number, clock: Clock, now: number): string {
  if (clock !== "ago") return timeOfDay(time, step, clock);
  return Math.abs(now - time) < step / 2 ? "now" : `${duration(now - time, step)} ago`;
}

function drawCall(
  context: CanvasRenderingContext2D,
  picture: Picture,
  span: CallSpan,
  now: number,
  top: number,
) {
  const { width, label } = picture;
  const color = colors();
  const limit = (x: number) => Math.min(Math.max(x, label - 2), width - kPad + 2);
  const x = xOf(picture, span.entered_seconds);
  const returned = xOf(picture, span.returned_seconds > 0 ? span.returned_seconds : now);
  const end = xOf(picture, endTime(span, now));
  if (Math.max(end, returned) < label - 2 || x > width - kPad) return;
  const bar = (from: number, to: number, y: number, height: number) =>
    context.fillRect(limit(from), y, Math.max(limit(to) - limit(from), 2), height);
  // The upper bar is the host's time inside the call, the lower one the GPU's.
  if (isOpen(span) || span.gpu !== "") {
    context.fillStyle = color(
      span.waits ? "--bar-waits" : isOpen(span) ? "--bar-queued" : "--bar-done",
    );
    bar(x, end, top + 14, 7);
  }
  context.fillStyle = color(span.waits ? "--bar-waits" : "--bar-host");
  bar(x, returned, top + 5, 8);
  if (!span.waits) return;
  context.fillStyle = color("--text");
  const text = `${callName(span.call)}, waits ${seconds(now - span.entered_seconds)}`;
  const wide = context.measureText(text).width;
  context.fillText(text, Math.max(label + 4, Math.min(x + 6, width - wide - 8)), top + 9);
}

function drawAxis(context: CanvasRenderingContext2D, picture: Picture, bottom: number): void {
  const { scale, shown, clock, now, label, width } = picture;
  const color = colors();
  const room = clock === "ago" ? 80 : 110;
  const anchor = clock === "ago" ? now : Math.floor(now);
  let free = label - 40;
  for (const tick of ticks(scale, shown, anchor, roomOf(picture), room)) {
    const x = xOf(picture, tick.time);
    context.fillStyle = color("--line");
    context.fillRect(x, 0, 1, bottom + 4);
    const text = say(tick.time, tick.step, clock, now);
    const wide = context.measureText(text).width;
    const left = Math.min(Math.max(x - wide / 2, label), width - wide);
    if (left < free) continue;
    free = left + wide + 8;
    context.fillStyle = color("--soft");
    context.fillText(text, left, bottom + kAxis / 2 + 2);
  }
  // Here the scale changes: calls to the left, the wait to the right.
  const x = xOf(picture, scale.last);
  if (scale.share === 1 || x < label || x > width - kPad) return;
  context.strokeStyle = color("--soft");
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, bottom);
  context.stroke();
  context.setLineDash([]);
}

function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const { lanes, width, label } = picture;
  const bottom = lanes.length * kLane;
  const context = prepare(canvas, width, bottom + kAxis);
  const color = colors();
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawAxis(context, picture, bottom);
  lanes.forEach((lane, index) => {
    const top = index * kLane;
    context.fillStyle = color("--line");
    context.fillRect(label, top + kLane - 1, roomOf(picture), 1);
    const end = endOf(lane, picture.now);
    for (const span of lane.comm.calls) drawCall(context, picture, span, end, top);
    context.fillStyle = color("--text");
    context.fillText(`rank ${lane.rank} · ${lane.name}`, 0, top + kLane / 2, label - 8);
  });
  const line = (time: number | undefined, wide: number) => {
    const x = time === undefined ? -1 : xOf(picture, time);
    if (x < label || x > width - kPad) return;
    context.fillStyle = color("--focus");
    context.fillRect(x, 0, wide, bottom);
  };
  line(picture.cursor, 1);
  line(picture.moment, 3);
  const chosen = spanOf(lanes, picture.choice);
  if (chosen === undefined) return;
  const now = endOf(lanes[picture.choice!.lane]!, picture.now);
  if (endTime(chosen, now) < picture.shown.from) return;
  if (chosen.entered_seconds > picture.shown.to) return;
  const from = Math.max(xOf(picture, chosen.entered_seconds), label);
  const to = Math.min(xOf(picture, endTime(chosen, now)), width - kPad);
  context.strokeStyle = color("--text");
  context.lineWidth = 2;
  context.strokeRect(
    from - 2,
    picture.choice!.lane * kLane + 3,
    Math.max(to - from, 2) + 4,
    kLane - 5,
  );
}

function spanOf(lanes: Lane[], choice: Choice | undefined): CallSpan | undefined {
  return choice === undefined ? undefined : lanes[choice.lane]?.comm.calls[choice.call];
}

// The call under the pointer, or nearly.
function callAt(picture: Picture, x: number, y: number): Choice | undefined {
  const lane = Math.floor(y / kLane);
  const here = picture.lanes[lane];
  if (here === undefined) return undefined;
  const now = endOf(here, picture.now);
  let best: Choice | undefined;
  let distance = kNear + 1;
  here.comm.calls.forEach((span, call) => {
    const from = xOf(picture, span.entered_seconds);
    const to = Math.max(xOf(picture, endTime(span, now)), from + 2);
    const away = Math.max(from - x, x - to, 0);
    if (away < distance || (away === 0 && distance === 0)) {
      distance = away;
      best = { lane, call };
    }
  });
  return best;
}

// What the host of a rank did at this moment, as far as the shown calls tell.
function doingAt(lane: Lane, time: number): string {
  const calls = lane.comm.calls;
  const inside = calls.find(
    (span) =>
      span.entered_seconds <= time &&
      (span.returned_seconds === 0 || time < span.returned_seconds || span.waits),
  );
  if (inside !== undefined) {
    const how = inside.waits && time >= inside.returned_seconds ? "waits in" : "in";
    return `${how} ${callName(inside.call)}`;
  }
  const before = calls.filter((span) => span.entered_seconds <= time);
  if (before.length === 0) return "earlier than its calls here";
  return `after ${callName(before[before.length - 1]!.call)}`;
}

function atMoment(picture: Picture, time: number): string {
  const { lanes, clock, now, shown } = picture;
  const step = (shown.to - shown.from) / 1000;
  const parts = lanes
    .slice(0, kMostAtMoment)
    .map((lane) => `rank ${lane.rank} · ${lane.name} ${doingAt(lane, time)}`);
  if (lanes.length > kMostAtMoment) parts.push(`${lanes.length - kMostAtMoment} more lanes`);
  return `At ${say(time, step, clock, now)}: ${parts.join("; ")}.`;
}

function describe(picture: Picture, choice: Choice): string {
  const { lanes, clock, now } = picture;
  const lane = lanes[choice.lane]!;
  const span = lane.comm.calls[choice.call]!;
  const step = findStep(lane.comm.calls);
  const before = step === undefined ? undefined : lane.comm.calls[choice.call - step.calls];
  const parts = [
    `rank ${lane.rank} · ${lane.name}: ${callName(span.call)}, ${callInWords(span.call)}`,
    `entered ${say(span.entered_seconds, 1e-6, clock, now)}`,
    span.returned_seconds > 0
      ? `${duration(span.returned_seconds - span.entered_seconds, 1e-6)} on the host`
      : "not returned",
  ];
  if (span.gpu !== "") parts.push(`${span.gpu} on the GPU`);
  if (span.waits) parts.push(`waits ${seconds(now - span.entered_seconds)}`);
  if (before !== undefined) {
    const apart = span.entered_seconds - before.entered_seconds;
    parts.push(`${duration(apart, 1e-5)} after the same call of the step before`);
  }
  if (span.call.code !== "") parts.push(span.call.code);
  return parts.join("; ");
}

// "dp repeats every 37 calls, 0.81 s", once for each communicator.
function stepsInWords(lanes: Lane[]): string {
  const found = new Map<string, string>();
  for (const lane of lanes) {
    const step = found.has(lane.name) ? undefined : findStep(lane.comm.calls);
    if (step === undefined) continue;
    const long = duration(step.seconds, step.seconds / 100);
    found.set(lane.name, `${lane.name} repeats every ${count(step.calls)} calls, ${long}`);
  }
  return [...found.values()].join("; ");
}

function onGpu(span: CallSpan): string {
  return span.gpu === "" ? "unknown" : span.gpu;
}

const columns: Column[] = [
  ["Rank"],
  ["Communicator"],
  ["Position", "number"],
  ["Call"],
  ["Code"],
  ["Entered", "number"],
  ["On the host", "number"],
  ["On the GPU"],
];

function CallsTable({ lanes, now }: { lanes: Lane[]; now: number }) {
  return (
    <Table label="calls" columns={columns}>
      {lanes.flatMap((lane) =>
        [...lane.comm.calls]
          .reverse()
          .slice(0, 10)
          .map((span) => (
            <tr
              key={
                `${lane.rank} ${lane.comm.communicator.id} ` +
                `${span.call.position} ${span.entered_seconds}`
              }
              class={span.waits ? "waits" : ""}
            >
              <td>{lane.rank}</td>
              <td>{lane.name}</td>
              <td class="number">{count(span.call.position)}</td>
              <td>
                {callInWords(span.call)}
                {span.waits && <b> waits</b>}
              </td>
              <td>{span.call.code}</td>
              <td class="number">{seconds(now - span.entered_seconds)} ago</td>
              <td class="number">
                {span.returned_seconds > 0
                  ? seconds(span.returned_seconds - span.entered_seconds)
                  : "not returned"}
              </td>
              <td>{onGpu(span)}</td>
            </tr>
          )),
      )}
    </Table>
  );
}

// The incident of the job that is open now, for the trace. undefined: there is none, or no answer.
async function openIncident(job: JobAddress): Promise<Incident | undefined> {
  try {
    const view = (await (await fetch(jobPath(job))).json()) as JobView;
    if (view.incident === "") return undefined;
    return (await (await fetch(incidentPath(view.incident))).json()) as Incident;
  } catch {
    return undefined;
  }
}

// Holds what is shown, with more calls as soon as the daemon has sent them.
function useHeld(path: string): [Shown | undefined, (shown: Shown | undefined) => void] {
  const [held, setHeld] = useState<Shown | undefined>(undefined);
  const wanted = useRef<object | undefined>(undefined);
  const hold = (shown: Shown | undefined): void => {
    const mine = {};
    wanted.current = shown === undefined ? undefined : mine;
    setHeld(shown);
    if (shown === undefined || path === "") return;
    fetch(path)
      .then(async (response) =>
        response.ok ? ((await response.json()) as CallsResponse) : undefined,
      )
      .then((calls) => {
        if (calls === undefined || wanted.current !== mine) return;
        setHeld({ calls, now: Date.parse(calls.now) / 1000 });
      })
      .catch(() => undefined); // what is shown stays
  };
  useEffect(() => {
    wanted.current = undefined;
    setHeld(undefined);
  }, [path]);
  return [held, hold];
}

const kKeys =
  "plus and minus zoom, left and right arrow keys move, up and down choose a lane, " +
  "n and p the next and previous call, 0 shows all";

function Legend() {
  const entries: [color: string, words: string][] = [
    ["--bar-host", "Above: the host inside the call"],
    ["--bar-done", "Below: the GPU has finished it"],
    ["--bar-queued", "Queued or running on the GPU"],
    ["--bar-waits", "Waits for others"],
  ];
  return (
    <div class="legend">
      {entries.map(([color, words]) => (
        <span key={color}>
          <span class="swatch" style={{ background: `var(${color})` }} aria-hidden="true" /> {words}
        </span>
      ))}
    </div>
  );
}

export function Timeline({
  job,
  ranks,
  moment,
  onMoment,
}: {
  job: JobAddress;
  ranks: string;
  moment?: number | undefined;
  onMoment?: (time: number) => void;
}) {
  const live = useLive<CallsResponse>(callsPath(job, ranks, kCalls));
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; moved: boolean } | undefined>(undefined);
  const [watch, width] = useWidth();
  const theme = useTheme();
  const [open, setOpen] = useState(false);
  const [clock, setClock] = useState<Clock>("ago");
  const [view, setView] = useState<Span | undefined>(undefined);
  const [chosen, setChosen] = useState<Chosen | undefined>(undefined);
  const [cursor, setCursor] = useState<number | undefined>(undefined);
  const [held, hold] = useHeld(callsPath(job, ranks, kHeldCalls));
  useEffect(() => {
    setView(undefined);
    setChosen(undefined);
    setCursor(undefined);
  }, [callsPath(job, ranks, kCalls)]);
  const source = held?.calls ?? live.value;
  const lanes = useMemo(() => (source === undefined ? [] : makeLanes(source)), [source]);
  const choice = useMemo(() => locate(lanes, chosen), [lanes, chosen]);
  const setChoice = (next: Choice | undefined): void => {
    const span = spanOf(lanes, next);
    const lane = lanes[next?.lane ?? -1];
    setChosen(
      span === undefined || lane === undefined
        ? undefined
        : { rank: lane.rank, comm: lane.comm.communicator.id, span },
    );
  };
  const waiting = held === undefined && lanes.some((lane) => lane.comm.calls.some(isOpen));
  const ticking = useClock(waiting && live.problem === "");
  // The daemon's clock has advanced since its response.
  const now =
    held?.now ??
    (live.value === undefined
      ? 0
      : Date.parse(live.value.now) / 1000 +
        (waiting && live.problem === "" ? Math.max(0, ticking - live.at) / 1000 : 0));
  const scale = scaleOf(lanes, now);
  const shown = view ?? { from: scale.from, to: scale.to };
  const label = width < 500 ? 96 : 170;
  const picture: Picture = {
    lanes,
    now,
    width,
    label,
    scale,
    shown,
    clock,
    choice,
    cursor,
    moment,
  };
  useEffect(() => {
    if (canvas.current !== null && width > 0 && lanes.length > 0) draw(canvas.current, picture);
  }, [lanes, now, width, theme, view, clock, choice, cursor, moment]);

  const keep = (): void => {
    if (held === undefined && source !== undefined) hold({ calls: source, now });
  };
  const show = (next: Span | undefined): void => {
    keep();
    setView(next);
  };
  const goLive = (): void => {
    hold(undefined);
    setView(undefined);
    setChoice(undefined);
    setCursor(undefined);
  };
  // Around the cursor if it is in sight.
  const center = (): number => {
    if (cursor === undefined || cursor < shown.from || cursor > shown.to) return 0.5;
    return (xOf(picture, cursor) - label) / roomOf(picture);
  };
  const zoomBy = (factor: number, at = center()): void => show(zoom(scale, shown, factor, at));
  const panBy = (by: number): void => show(pan(scale, shown, by));
  const latest = useRef({ zoomBy, panBy });
  latest.current = { zoomBy, panBy };
  const hasLanes = lanes.length > 0;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    // Without the focus or Ctrl, the wheel scrolls the page.
    const onWheel = (event: WheelEvent): void => {
      const isOurs = event.ctrlKey || event.metaKey || document.activeElement === element;
      if (!isOurs) return;
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const room = Math.max(box.width - label - kPad, 1);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        latest.current.panBy(event.deltaX / room);
        return;
      }
      const at = Math.min(Math.max((event.clientX - box.left - label) / room, 0), 1);
      latest.current.zoomBy(Math.min(Math.max(1.0015 ** event.deltaY, 0.5), 2), at);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [hasLanes, label]);

  const choose = (next: Choice | undefined): void => {
    const span = spanOf(lanes, next);
    if (span === undefined) return;
    keep();
    setChoice(next);
    setCursor(span.entered_seconds);
    if (span.entered_seconds >= shown.from && span.entered_seconds <= shown.to) return;
    const middle = toShare(scale, (shown.from + shown.to) / 2);
    const wide = toShare(scale, shown.to) - toShare(scale, shown.from);
    setView(pan(scale, shown, (toShare(scale, span.entered_seconds) - middle) / wide));
  };
  const step = (by: number): void => {
    const lane = choice?.lane ?? 0;
    const calls = lanes[lane]?.comm.calls ?? [];
    const at = choice === undefined ? calls.length - 1 : choice.call + by;
    choose({ lane, call: Math.min(Math.max(at, 0), calls.length - 1) });
  };
  const changeLane = (by: number): void => {
    const lane = Math.min(Math.max((choice?.lane ?? -by) + by, 0), lanes.length - 1);
    const time = cursor ?? shown.to;
    const calls = lanes[lane]?.comm.calls ?? [];
    const after = calls.findIndex((span) => endTime(span, now) >= time);
    choose({ lane, call: after < 0 ? calls.length - 1 : after });
  };
  const keys: Record<string, () => void> = {
    "+": () => zoomBy(1 / kZoom),
    "=": () => zoomBy(1 / kZoom),
    "-": () => zoomBy(kZoom),
    "0": goLive,
    Escape: goLive,
    ArrowLeft: () => panBy(-kPan),
    ArrowRight: () => panBy(kPan),
    ArrowUp: () => changeLane(-1),
    ArrowDown: () => changeLane(1),
    n: () => step(1),
    p: () => step(-1),
    m: () => cursor !== undefined && onMoment?.(cursor),
  };
  const onKey = (event: KeyboardEvent): void => {
    const act = keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const onMove = (event: PointerEvent): void => {
    const box = canvas.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    if (drag.current !== undefined) {
      const by = drag.current.x - x;
      if (!drag.current.moved && Math.abs(by) < kNear) return;
      drag.current = { x, moved: true };
      panBy(by / roomOf(picture));
      return;
    }
    if (x < label) return;
    setChoice(callAt(picture, x, event.clientY - box.top));
    setCursor(timeAt(picture, x));
  };
  const save = async (): Promise<void> => {
    if (source === undefined) return;
    const window = { ...shown };
    const calls = inWindow({ ...source, now: new Date(now * 1000).toISOString() }, window);
    download(`${job.job}.trace.json`, toTrace(calls, job, await openIncident(job)));
  };

  if (live.value === undefined) return <Waiting live={live} what="calls" />;
  const isWhole = view === undefined;
  const steps = stepsInWords(lanes);
  return (
    <>
      <Stale live={live} />
      {!hasLanes && (
        <p class="soft">
          The daemon has no calls of these ranks. In very large jobs it keeps only the calls of
          ranks in an incident.
        </p>
      )}
      {hasLanes && (
        <div class="actions timeline-actions" role="group" aria-label="timeline">
          <button
            type="button"
            aria-label="Zoom in"
            title="Zoom in (+)"
            onClick={() => zoomBy(1 / kZoom)}
          >
            +
          </button>
          <button
            type="button"
            aria-label="Zoom out"
            title="Zoom out (−)"
            disabled={isWhole}
            onClick={() => zoomBy(kZoom)}
          >
            −
          </button>
          <button
            type="button"
            aria-label="Earlier"
            title="Earlier (←)"
            disabled={isWhole}
            onClick={() => panBy(-kPan)}
          >
            ←
          </button>
          <button
            type="button"
            aria-label="Later"
            title="Later (→)"
            disabled={isWhole}
            onClick={() => panBy(kPan)}
          >
            →
          </button>
          <button type="button" disabled={held === undefined} onClick={goLive}>
            Live
          </button>
          <label>
            Times{" "}
            <select
              value={clock}
              onChange={(event) => setClock(event.currentTarget.value as Clock)}
            >
              <option value="ago">ago</option>
              <option value="local">here ({zoneName("local")})</option>
              <option value="utc">UTC</option>
            </select>
          </label>
          <button
            type="button"
            title="The calls in this window, for ui.perfetto.dev or chrome://tracing"
            onClick={() => void save()}
          >
            Download trace
          </button>
        </div>
      )}
      <div ref={watch} class="timeline">
        {hasLanes && (
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            aria-label={`calls of ranks ${ranks}: ${kKeys}; the table below has the same data`}
            onKeyDown={onKey}
            onPointerDown={(event) => {
              if (event.button !== 0) return;
              canvas.current!.focus({ preventScroll: true });
              canvas.current!.setPointerCapture(event.pointerId);
              const box = canvas.current!.getBoundingClientRect();
              drag.current = { x: event.clientX - box.left, moved: false };
            }}
            onPointerMove={onMove}
            onDblClick={() => cursor !== undefined && onMoment?.(cursor)}
            onPointerUp={() => (drag.current = undefined)}
            onPointerCancel={() => (drag.current = undefined)}
            onPointerLeave={() => {
              if (held !== undefined || drag.current !== undefined) return;
              setChoice(undefined);
              setCursor(undefined);
            }}
          />
        )}
      </div>
      {hasLanes && (
        <>
          <p class="hint" aria-live="polite">
            {spanOf(lanes, choice) !== undefined && describe(picture, choice!)}
          </p>
          <p class="hint">{cursor !== undefined && atMoment(picture, cursor)}</p>
          <p class="hint soft">
            {duration(shown.to - shown.from, (shown.to - shown.from) / 100)} shown
            {clock === "ago"
              ? `, times before ${timeOfDay(now, 1, "local")} (${zoneName("local")})`
              : `, times in ${zoneName(clock)}`}
            {held !== undefined && "; held: it does not follow the job until Live"}
          </p>
          {steps !== "" && <p class="hint soft">Steps: {steps}.</p>}
          <Legend />
          <p class="soft hint">
            Ctrl and the wheel zoom, dragging moves; on the timeline {kKeys}.
            {onMoment !== undefined &&
              " A double click, or m, shows the ranks and communicators as of that moment."}
          </p>
          <details onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>As a table</summary>
            {open && <CallsTable lanes={lanes} now={now} />}
          </details>
        </>
      )}
    </>
  );
}
