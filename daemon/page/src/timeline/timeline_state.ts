// SPDX-License-Identifier: Apache-2.0
// The state of the timeline, and what a person does with it: zoom, move, choose a call, hold, follow.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { callsPath, type JobAddress } from "../api";
import type { Mismatch } from "../jobs/mismatch";
import { type Live, useClock, useLive } from "../live";
import type { CallsResponse } from "../messages";
import { pan, type Span, toShare, zoom } from "../timescale";
import { useZone } from "../zone";
import {
  type Choice,
  type Chosen,
  endTime,
  isOpen,
  type Lane,
  locate,
  makeLanes,
  type Shown,
  scaleOf,
  spanOf,
} from "./timeline_lanes";
import { type Picture, roomOf, xOf } from "./timeline_picture";

const kCalls = 30;
const kHeldCalls = 256; // of each rank and communicator, once the timeline holds them

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

export interface TimelineState {
  live: Live<CallsResponse>;
  source: CallsResponse | undefined; // what is shown, live or held
  picture: Picture;
  isWhole: boolean;
  isHeld: boolean;
  setClock: (isAgo: boolean) => void;
  goLive: () => void;
  zoomBy: (factor: number, at?: number) => void;
  panBy: (by: number) => void;
  step: (by: number) => void; // to another call of the lane
  changeLane: (by: number) => void;
  point: (choice: Choice | undefined, cursor: number | undefined) => void;
}

// The answer that is shown, and the moment up to which open calls last.
function useSource(path: string, heldPath: string) {
  const live = useLive<CallsResponse>(path);
  const [held, hold] = useHeld(heldPath);
  const source = held?.calls ?? live.value;
  const lanes = useMemo(() => (source === undefined ? [] : makeLanes(source)), [source]);
  const waiting = held === undefined && lanes.some((lane) => lane.comm.calls.some(isOpen));
  const ticking = useClock(waiting && live.problem === "");
  // The daemon's clock has advanced since its response.
  const now =
    held?.now ??
    (live.value === undefined
      ? 0
      : Date.parse(live.value.now) / 1000 +
        (waiting && live.problem === "" ? Math.max(0, ticking - live.at) / 1000 : 0));
  return { live, held, hold, source, lanes, now };
}

// The chosen call, which stays chosen in later answers.
function useChoice(lanes: Lane[]) {
  const [chosen, setChosen] = useState<Chosen | undefined>(undefined);
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
  return { choice, setChoice };
}

export function useTimeline(
  job: JobAddress,
  ranks: string,
  width: number,
  moment: number | undefined,
  mismatch: Mismatch | undefined,
): TimelineState {
  const path = callsPath(job, ranks, kCalls);
  const { live, held, hold, source, lanes, now } = useSource(
    path,
    callsPath(job, ranks, kHeldCalls),
  );
  const { choice, setChoice } = useChoice(lanes);
  const [isAgo, setIsAgo] = useState(true);
  const zone = useZone();
  const [view, setView] = useState<Span | undefined>(undefined);
  const [cursor, setCursor] = useState<number | undefined>(undefined);
  useEffect(() => {
    setView(undefined);
    setChoice(undefined);
    setCursor(undefined);
  }, [path]);
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
    clock: isAgo ? "ago" : zone,
    choice,
    cursor,
    moment,
    mismatch,
  };
  const keep = (): void => {
    if (held === undefined && source !== undefined) hold({ calls: source, now });
  };
  const show = (next: Span | undefined): void => {
    keep();
    setView(next);
  };
  const point = (next: Choice | undefined, at: number | undefined): void => {
    setChoice(next);
    setCursor(at);
  };
  const goLive = (): void => {
    hold(undefined);
    setView(undefined);
    point(undefined, undefined);
  };
  // Around the cursor if it is in sight.
  const center = (): number => {
    if (cursor === undefined || cursor < shown.from || cursor > shown.to) return 0.5;
    return (xOf(picture, cursor) - label) / roomOf(picture);
  };
  const choose = (next: Choice): void => {
    const span = spanOf(lanes, next);
    if (span === undefined) return;
    keep();
    point(next, span.entered_seconds);
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
  return {
    live,
    source,
    picture,
    isWhole: view === undefined,
    isHeld: held !== undefined,
    setClock: setIsAgo,
    goLive,
    zoomBy: (factor, at = center()) => show(zoom(scale, shown, factor, at)),
    panBy: (by) => show(pan(scale, shown, by)),
    step,
    changeLane,
    point,
  };
}
