// SPDX-License-Identifier: Apache-2.0
// The timeline's canvas: the keys, the wheel and the pointer.
import { useEffect, useRef } from "preact/hooks";
import { useTheme } from "../theme";
import { draw } from "./timeline_draw";
import { callAt, kNear, kPad, roomOf, timeAt } from "./timeline_picture";
import type { TimelineState } from "./timeline_state";

export const kZoom = 1.5;
export const kPan = 0.2;

export const kKeys =
  "plus and minus zoom, left and right arrow keys move, up and down choose a lane, " +
  "n and p the next and previous call, 0 shows all";

type Reference = { current: HTMLCanvasElement | null };

// Without the focus or Ctrl, the wheel scrolls the page.
function useWheel(canvas: Reference, state: TimelineState): void {
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const onWheel = (event: WheelEvent): void => {
      const isOurs = event.ctrlKey || event.metaKey || document.activeElement === element;
      if (!isOurs) return;
      event.preventDefault();
      const { label } = latest.current.picture;
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
  }, []);
}

function keysOf(state: TimelineState, onMoment: ((time: number) => void) | undefined) {
  const { cursor } = state.picture;
  const keys: Record<string, () => void> = {
    "+": () => state.zoomBy(1 / kZoom),
    "=": () => state.zoomBy(1 / kZoom),
    "-": () => state.zoomBy(kZoom),
    "0": state.goLive,
    Escape: state.goLive,
    ArrowLeft: () => state.panBy(-kPan),
    ArrowRight: () => state.panBy(kPan),
    ArrowUp: () => state.changeLane(-1),
    ArrowDown: () => state.changeLane(1),
    n: () => state.step(1),
    p: () => state.step(-1),
    m: () => cursor !== undefined && onMoment?.(cursor),
  };
  return (event: KeyboardEvent): void => {
    const act = keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
}

// Dragging moves the timeline, pointing chooses the call under the pointer.
function usePointer(canvas: Reference, state: TimelineState) {
  const drag = useRef<{ x: number; moved: boolean } | undefined>(undefined);
  const { picture } = state;
  const end = (): void => {
    drag.current = undefined;
  };
  return {
    onPointerDown: (event: PointerEvent): void => {
      if (event.button !== 0) return;
      canvas.current!.focus({ preventScroll: true });
      canvas.current!.setPointerCapture(event.pointerId);
      const box = canvas.current!.getBoundingClientRect();
      drag.current = { x: event.clientX - box.left, moved: false };
    },
    onPointerMove: (event: PointerEvent): void => {
      const box = canvas.current!.getBoundingClientRect();
      const x = event.clientX - box.left;
      if (drag.current !== undefined) {
        const by = drag.current.x - x;
        if (!drag.current.moved && Math.abs(by) < kNear) return;
        drag.current = { x, moved: true };
        state.panBy(by / roomOf(picture));
        return;
      }
      if (x < picture.label) return;
      state.point(callAt(picture, x, event.clientY - box.top), timeAt(picture, x));
    },
    onPointerUp: end,
    onPointerCancel: end,
    onPointerLeave: (): void => {
      if (!state.isHeld && drag.current === undefined) state.point(undefined, undefined);
    },
  };
}

export function TimelineCanvas({
  state,
  ranks,
  onMoment,
}: {
  state: TimelineState;
  ranks: string;
  onMoment: ((time: number) => void) | undefined;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const { picture } = state;
  const { lanes, now, width, shown, clock, choice, cursor, moment, mismatch } = picture;
  useEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, picture);
  }, [lanes, now, width, theme, shown.from, shown.to, clock, choice, cursor, moment, mismatch]);
  useWheel(canvas, state);
  return (
    <canvas
      ref={canvas}
      tabIndex={0}
      role="application"
      aria-label={`calls of ranks ${ranks}: ${kKeys}; the table below has the same data`}
      onKeyDown={keysOf(state, onMoment)}
      onDblClick={() => cursor !== undefined && onMoment?.(cursor)}
      {...usePointer(canvas, state)}
    />
  );
}
