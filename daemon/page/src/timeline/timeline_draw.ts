// SPDX-License-Identifier: Apache-2.0
// Draws the timeline on its canvas.
import { colors, prepare } from "../canvas";
import { seconds } from "../format";
import { differs } from "../jobs/mismatch";
import type { CallSpan } from "../messages";
import { ticks } from "../timescale";
import { callName, endOf, endTime, isOpen, spanOf } from "./timeline_lanes";
import { kLane, kPad, type Picture, roomOf, xOf } from "./timeline_picture";
import { say } from "./timeline_words";

const kAxis = 22;

function drawCall(
  context: CanvasRenderingContext2D,
  picture: Picture,
  span: CallSpan,
  now: number,
  top: number,
  isOther: boolean, // it differs from that of the others
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
  const text = `${isOther ? "≠ " : ""}${callName(span.call)}, waits ${seconds(now - span.entered_seconds)}`;
  const wide = context.measureText(text).width;
  context.fillText(text, Math.max(label + 4, Math.min(x + 6, width - wide - 8)), top + 9);
}

// A frame around a call that differs from that of the others, and the sign beside it, which stands before
// the words of a call that waits.
function drawMismatch(
  context: CanvasRenderingContext2D,
  picture: Picture,
  span: CallSpan,
  now: number,
  top: number,
) {
  const { label, width } = picture;
  const from = xOf(picture, span.entered_seconds);
  const to = Math.max(xOf(picture, endTime(span, now)), from + 2);
  if (to < label || from > width - kPad) return;
  const left = Math.max(from, label + 1);
  const right = Math.min(to, width - kPad);
  context.strokeStyle = colors()("--bad");
  context.lineWidth = 2;
  context.strokeRect(left - 1, top + 1, right - left + 2, kLane - 3);
  if (span.waits) return;
  context.fillStyle = colors()("--bad");
  context.fillText("≠", left - 14 > label ? left - 14 : right + 4, top + kLane / 2);
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

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
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
    for (const span of lane.comm.calls) {
      const isOther = differs(picture.mismatch, lane.rank, lane.comm, span.call);
      drawCall(context, picture, span, end, top, isOther);
      if (isOther) drawMismatch(context, picture, span, end, top);
    }
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
  drawChosen(context, picture);
}

function drawChosen(context: CanvasRenderingContext2D, picture: Picture): void {
  const { lanes, width, label } = picture;
  const chosen = spanOf(lanes, picture.choice);
  if (chosen === undefined) return;
  const now = endOf(lanes[picture.choice!.lane]!, picture.now);
  if (endTime(chosen, now) < picture.shown.from) return;
  if (chosen.entered_seconds > picture.shown.to) return;
  const from = Math.max(xOf(picture, chosen.entered_seconds), label);
  const to = Math.min(xOf(picture, endTime(chosen, now)), width - kPad);
  context.strokeStyle = colors()("--text");
  context.lineWidth = 2;
  context.strokeRect(
    from - 2,
    picture.choice!.lane * kLane + 3,
    Math.max(to - from, 2) + 4,
    kLane - 5,
  );
}
