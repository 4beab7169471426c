// SPDX-License-Identifier: Apache-2.0
// The timeline in words: a moment, a call, the steps of a training loop.
import { call as callInWords, count, seconds } from "../format";
import { differs, inWords } from "../jobs/mismatch";
import { type Clock, duration, timeOfDay } from "../timescale";
import { type Choice, callName, type Lane } from "./timeline_lanes";
import type { Picture } from "./timeline_picture";

const kMostAtMoment = 6;

// "12.25 s ago", or the time of the day. `step` seconds matter.
export function say(time: number, step: number, clock: Clock, now: number): string {
  if (clock !== "ago") return timeOfDay(time, step, clock);
  return Math.abs(now - time) < step / 2 ? "now" : `${duration(now - time, step)} ago`;
}

// What the host of a rank did at this moment, as far as the shown calls reveal.
export function doingAt(lane: Lane, time: number): string {
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

export function atMoment(picture: Picture, time: number): string {
  const { lanes, clock, now, shown } = picture;
  const step = (shown.to - shown.from) / 1000;
  const parts = lanes
    .slice(0, kMostAtMoment)
    .map((lane) => `rank ${lane.rank} · ${lane.name} ${doingAt(lane, time)}`);
  if (lanes.length > kMostAtMoment) parts.push(`${lanes.length - kMostAtMoment} more lanes`);
  return `At ${say(time, step, clock, now)}: ${parts.join("; ")}.`;
}

export function describe(picture: Picture, choice: Choice): string {
  const { lanes, clock, now } = picture;
  const lane = lanes[choice.lane]!;
  const span = lane.comm.calls[choice.call]!;
  const { step } = lane.comm;
  const before = step === undefined ? undefined : lane.comm.calls[choice.call - step.calls];
  const parts = [
    `rank ${lane.rank} · ${lane.name}: ${callName(span.call)}, ${callInWords(span.call)}`,
    `entered ${say(span.entered_seconds, 1e-6, clock, now)}`,
    span.returned_seconds > 0
      ? `${duration(span.returned_seconds - span.entered_seconds, 1e-6)} on the host`
      : "not returned",
  ];
  if (span.gpu !== "") parts.push(`${span.gpu} on the GPU`);
  if (picture.mismatch && differs(picture.mismatch, lane.rank, lane.comm, span.call))
    parts.push(`≠ ${inWords(picture.mismatch)}`);
  if (span.waits) parts.push(`waits ${seconds(now - span.entered_seconds)}`);
  if (before !== undefined) {
    const apart = span.entered_seconds - before.entered_seconds;
    parts.push(`${duration(apart, 1e-5)} after the same call of the step before`);
  }
  if (span.call.code !== "") parts.push(span.call.code);
  return parts.join("; ");
}

// "dp repeats every 37 calls, 0.81 s", once for each communicator.
export function stepsInWords(lanes: Lane[]): string {
  const found = new Map<string, string>();
  for (const lane of lanes) {
    const { step } = lane.comm;
    if (step === undefined || found.has(lane.name)) continue;
    const long = duration(step.seconds, step.seconds / 100);
    found.set(lane.name, `${lane.name} repeats every ${count(step.calls)} calls, ${long}`);
  }
  return [...found.values()].join("; ");
}
