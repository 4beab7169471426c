// SPDX-License-Identifier: Apache-2.0
// The lanes of the timeline: one for each rank and communicator, with its newest calls. Pure.
import type { Call, CallSpan, CallsResponse, CommunicatorCalls } from "../messages";
import { makeScale, type Scale } from "../timescale";

export interface Lane {
  rank: number;
  comm: CommunicatorCalls;
  name: string;
}

export function makeLanes(response: CallsResponse): Lane[] {
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

const kPointToPoint = ["Send", "Recv", "PutSignal", "Signal", "WaitSignal"];

// "AllReduce #8812", "Send peer 3".
export function callName(call: Call): string {
  const operation = call.operation || "a call";
  if (!kPointToPoint.includes(operation)) return `${operation} #${call.position}`;
  return call.root < 0 ? operation : `${operation} peer ${call.root}`;
}

// Whether the call is in progress: on the host, on the GPU, or waiting.
export function isOpen(span: CallSpan): boolean {
  return (
    span.returned_seconds === 0 || span.waits || span.gpu === "queued" || span.gpu === "started"
  );
}

export function endTime(span: CallSpan, now: number): number {
  return isOpen(span) ? now : span.returned_seconds;
}

// The calls, and the daemon's time when it answered.
export interface Shown {
  calls: CallsResponse;
  now: number;
}

// A process that has ended is in no call any more.
export function endOf(lane: Lane, now: number): number {
  const ended = lane.comm.ended_seconds;
  return ended > 0 ? Math.min(ended, now) : now;
}

export function scaleOf(lanes: Lane[], now: number): Scale {
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
export interface Choice {
  lane: number;
  call: number;
}

// The same, also in a later answer of the daemon, in which times differ by nanoseconds.
export interface Chosen {
  rank: number;
  comm: string;
  span: CallSpan;
}

export function locate(lanes: Lane[], chosen: Chosen | undefined): Choice | undefined {
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

export function spanOf(lanes: Lane[], choice: Choice | undefined): CallSpan | undefined {
  return choice === undefined ? undefined : lanes[choice.lane]?.comm.calls[choice.call];
}
