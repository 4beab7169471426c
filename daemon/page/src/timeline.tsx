// SPDX-License-Identifier: Apache-2.0
// The newest calls of chosen ranks: one lane for each rank and communicator.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { callsPath, type JobAddress } from "./api";
import { colors, prepare } from "./canvas";
import { call as callInWords, count, seconds } from "./format";
import { useClock, useLive } from "./live";
import type { CallSpan, CallsResponse, CommunicatorCalls } from "./messages";
import { type Column, Stale, Table, useWidth, Waiting } from "./parts";
import { useTheme } from "./theme";

const kCalls = 30;
const kLane = 26;
const kAxis = 22;
const kLabel = 170;

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

// The period of the calls. A long wait does not compress all other calls at the left edge.
function timeWindow(lanes: Lane[], now: number): [number, number] {
  const entered = lanes.flatMap((lane) => lane.comm.calls.map((span) => span.entered_seconds));
  if (entered.length === 0) return [now - 1, now];
  const open = lanes.some((lane) => lane.comm.calls.some(isOpen));
  const ended = Math.max(
    ...lanes.flatMap((lane) =>
      lane.comm.calls.map((span) => span.returned_seconds || span.entered_seconds),
    ),
  );
  const to = open ? now : ended;
  return [Math.min(...entered), Math.max(to, Math.min(...entered) + 1e-6)];
}

// Uses a linear scale, unless a long wait would leave no room for the calls.
function placer(lanes: Lane[], from: number, to: number, width: number): (time: number) => number {
  const moments = [
    ...new Set(
      lanes.flatMap((lane) =>
        lane.comm.calls.flatMap((span) =>
          span.returned_seconds > 0
            ? [span.entered_seconds, span.returned_seconds]
            : [span.entered_seconds],
        ),
      ),
    ),
  ].sort((a, b) => a - b);
  const last = moments[moments.length - 1] ?? to;
  const busy = Math.max(last - from, 1e-9);
  const share = to > last ? Math.min(0.75, Math.max(0.25, busy / (to - from))) : 1;
  return (time) =>
    time <= last
      ? ((time - from) / busy) * share * width
      : share * width + ((time - last) / Math.max(to - last, 1e-9)) * (1 - share) * width;
}

function drawLanes(canvas: HTMLCanvasElement, lanes: Lane[], now: number, width: number): void {
  const height = lanes.length * kLane + kAxis;
  const context = prepare(canvas, width, height);
  const color = colors();
  const [from, to] = timeWindow(lanes, now);
  const room = width - kLabel - 8;
  const place = placer(lanes, from, to, room);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  lanes.forEach((lane, index) => {
    const top = index * kLane;
    context.fillStyle = color("--text");
    context.fillText(`rank ${lane.rank} · ${lane.name}`, 0, top + kLane / 2, kLabel - 8);
    context.fillStyle = color("--line");
    context.fillRect(kLabel, top + kLane - 1, room, 1);
    for (const span of lane.comm.calls) {
      const x = kLabel + place(span.entered_seconds);
      const returned = kLabel + place(span.returned_seconds > 0 ? span.returned_seconds : now);
      const end = kLabel + place(endTime(span, now));
      // The upper bar is the host's time inside the call, the lower one the GPU's.
      if (isOpen(span) || span.gpu !== "") {
        context.fillStyle = color(
          span.waits ? "--bar-waits" : isOpen(span) ? "--bar-queued" : "--bar-done",
        );
        context.fillRect(x, top + 14, Math.max(end - x, 2), 7);
      }
      context.fillStyle = color(span.waits ? "--bar-waits" : "--bar-host");
      context.fillRect(x, top + 5, Math.max(returned - x, 2), 8);
      if (span.waits) {
        context.fillStyle = color("--text");
        const waited = seconds(now - span.entered_seconds);
        const text = `${span.call.operation} #${count(span.call.position)}, waits ${waited}`;
        const wide = context.measureText(text).width;
        context.fillText(text, Math.max(kLabel + 4, Math.min(x + 6, width - wide - 8)), top + 9);
      }
    }
  });
  context.fillStyle = color("--soft");
  const bottom = lanes.length * kLane + kAxis / 2;
  context.fillText(`${seconds(to - from)} ago`, kLabel, bottom);
  context.textAlign = "right";
  context.fillText(
    lanes.some((lane) => lane.comm.calls.some(isOpen)) ? "now" : "the last call",
    width - 4,
    bottom,
  );
  context.textAlign = "left";
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

export function Timeline({ job, ranks }: { job: JobAddress; ranks: string }) {
  const live = useLive<CallsResponse>(callsPath(job, ranks, kCalls));
  const canvas = useRef<HTMLCanvasElement>(null);
  const [watch, width] = useWidth();
  const theme = useTheme();
  const [open, setOpen] = useState(false);
  const lanes = useMemo(
    () => (live.value === undefined ? [] : makeLanes(live.value)),
    [live.value],
  );
  const waiting = lanes.some((lane) => lane.comm.calls.some(isOpen));
  const clock = useClock(waiting && live.problem === "");
  // The daemon's clock has advanced since its response.
  const now =
    live.value === undefined
      ? 0
      : Date.parse(live.value.now) / 1000 +
        (waiting && live.problem === "" ? Math.max(0, clock - live.at) / 1000 : 0);
  useEffect(() => {
    if (canvas.current !== null && width > 0 && lanes.length > 0)
      drawLanes(canvas.current, lanes, now, width);
  }, [lanes, now, width, theme]);
  if (live.value === undefined) return <Waiting live={live} what="calls" />;
  return (
    <>
      <Stale live={live} />
      {lanes.length === 0 && (
        <p class="soft">
          The daemon has no calls of these ranks. In very large jobs it keeps only the calls of
          ranks in an incident.
        </p>
      )}
      <div ref={watch}>
        {lanes.length > 0 && (
          <canvas
            ref={canvas}
            role="img"
            aria-label={`calls of ranks ${ranks}; the table below has the same data`}
          />
        )}
      </div>
      {lanes.length > 0 && (
        <div class="legend">
          <span>
            <span class="swatch" style={{ background: "var(--bar-host)" }} aria-hidden="true" />{" "}
            Above: the host inside the call
          </span>
          <span>
            <span class="swatch" style={{ background: "var(--bar-done)" }} aria-hidden="true" />{" "}
            Below: the GPU has finished it
          </span>
          <span>
            <span class="swatch" style={{ background: "var(--bar-queued)" }} aria-hidden="true" />{" "}
            Queued or running on the GPU
          </span>
          <span>
            <span class="swatch" style={{ background: "var(--bar-waits)" }} aria-hidden="true" />{" "}
            Waits for others
          </span>
        </div>
      )}
      {lanes.length > 0 && (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>As a table</summary>
          {open && <CallsTable lanes={lanes} now={now} />}
        </details>
      )}
    </>
  );
}
