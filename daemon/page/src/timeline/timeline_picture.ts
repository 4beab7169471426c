// SPDX-License-Identifier: Apache-2.0
// What the timeline shows, and where each moment and call lies on it. Pure. Times in seconds since
// the Unix epoch, lengths in pixels.
import type { Mismatch } from "../jobs/mismatch";
import { type Clock, type Scale, type Span, toShare, toTime } from "../timescale";
import { type Choice, endOf, endTime, type Lane } from "./timeline_lanes";

export const kLane = 26;
export const kPad = 8;
export const kNear = 3; // pixels by which the pointer may miss a call

export interface Picture {
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
  mismatch: Mismatch | undefined; // the call in which ranks differ
}

export const roomOf = (picture: Picture) => Math.max(picture.width - picture.label - kPad, 1);

export function xOf(picture: Picture, time: number): number {
  const low = toShare(picture.scale, picture.shown.from);
  const high = toShare(picture.scale, picture.shown.to);
  const share = (toShare(picture.scale, time) - low) / Math.max(high - low, 1e-12);
  return picture.label + share * roomOf(picture);
}

export function timeAt(picture: Picture, x: number): number {
  const low = toShare(picture.scale, picture.shown.from);
  const high = toShare(picture.scale, picture.shown.to);
  const share = Math.min(Math.max((x - picture.label) / roomOf(picture), 0), 1);
  return toTime(picture.scale, low + share * (high - low));
}

// The call under the pointer, or nearly.
export function callAt(picture: Picture, x: number, y: number): Choice | undefined {
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
