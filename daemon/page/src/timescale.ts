// SPDX-License-Identifier: Apache-2.0
// Where a moment lies on the timeline, and the moments that its axis names. Times in seconds since
// the Unix epoch; a share is 0 at the left end of all calls and 1 at the right.

// Linear up to the last moment of a call, and linear after it: a long wait leaves room for the calls.
export interface Scale {
  from: number;
  to: number;
  last: number;
  share: number; // of `last`
}

export interface Span {
  from: number;
  to: number;
}

export function makeScale(moments: number[], to: number): Scale {
  const from = moments.reduce((a, b) => Math.min(a, b), Infinity);
  if (moments.length === 0) return { from: to - 1, to, last: to, share: 1 };
  const last = Math.max(
    moments.reduce((a, b) => Math.max(a, b), from),
    from + 1e-6,
  );
  const end = Math.max(to, last);
  const busy = (last - from) / (end - from);
  return { from, to: end, last, share: end > last ? Math.min(0.75, Math.max(0.25, busy)) : 1 };
}

export function toShare(scale: Scale, time: number): number {
  if (time <= scale.last || scale.share === 1)
    return ((time - scale.from) / (scale.last - scale.from)) * scale.share;
  return scale.share + ((time - scale.last) / (scale.to - scale.last)) * (1 - scale.share);
}

export function toTime(scale: Scale, share: number): number {
  if (share <= scale.share) return scale.from + (share / scale.share) * (scale.last - scale.from);
  return scale.last + ((share - scale.share) / (1 - scale.share)) * (scale.to - scale.last);
}

const kLeastSeconds = 2e-6; // times have about a quarter of a microsecond

// The part between these shares, moved into the scale; undefined means all of it.
function part(scale: Scale, low: number, high: number): Span | undefined {
  const width = Math.min(high - low, 1);
  if (width >= 1) return undefined;
  const left = Math.min(Math.max(low, 0), 1 - width);
  return { from: toTime(scale, left), to: toTime(scale, left + width) };
}

// Zooms by this factor (below 1: closer) around the share of the shown part.
export function zoom(scale: Scale, shown: Span, factor: number, at: number): Span | undefined {
  const low = toShare(scale, shown.from);
  const high = toShare(scale, shown.to);
  const center = low + (high - low) * at;
  if (factor < 1 && shown.to - shown.from <= kLeastSeconds) return shown;
  return part(scale, center - (center - low) * factor, center + (high - center) * factor);
}

// Moves the shown part by this share of itself.
export function pan(scale: Scale, shown: Span, by: number): Span | undefined {
  const low = toShare(scale, shown.from);
  const high = toShare(scale, shown.to);
  return part(scale, low + (high - low) * by, high + (high - low) * by);
}

// A round number of seconds that is at least this long.
export function roundStep(least: number): number {
  const minutes = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];
  if (least > 0.5) return minutes.find((one) => one >= least) ?? Math.ceil(least / 86400) * 86400;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-7)));
  return [1, 2, 5, 10].map((n) => n * power).find((one) => one >= least * 0.999)!;
}

export interface Tick {
  time: number;
  step: number; // to the next tick
}

// Ticks at round distances from `anchor`, `room` pixels apart at least.
export function ticks(
  scale: Scale,
  shown: Span,
  anchor: number,
  width: number,
  room: number,
): Tick[] {
  const low = toShare(scale, shown.from);
  const perShare = width / (toShare(scale, shown.to) - low);
  const pieces: Span[] = [
    { from: shown.from, to: Math.min(shown.to, scale.last) },
    { from: Math.max(shown.from, scale.last), to: shown.to },
  ];
  return pieces.flatMap(({ from, to }) => {
    const pixels = (toShare(scale, to) - toShare(scale, from)) * perShare;
    if (to <= from || pixels < room) return [];
    const step = roundStep(((to - from) / pixels) * room);
    const first = Math.ceil((from - anchor) / step);
    const count = Math.min(Math.floor((to - anchor) / step) - first + 1, 100);
    return Array.from({ length: Math.max(count, 0) }, (_, i) => ({
      time: anchor + (first + i) * step,
      step,
    }));
  });
}

// The reader's time zone, or UTC.
export type Zone = "local" | "utc";
// How the timeline shows times: as an age, or as times of the day.
export type Clock = "ago" | Zone;

// `at`, in seconds: the offset of summer is not that of winter.
export function zoneName(clock: Zone, at: number = Date.now() / 1000): string {
  if (clock === "utc") return "UTC";
  const minutes = -new Date(at * 1000).getTimezoneOffset();
  const sign = minutes < 0 ? "−" : "+";
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const offset = `UTC${sign}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name === "UTC" ? name : `${name}, ${offset}`;
}

// A moment of the day, exact to `step` seconds: "03:12:07.25".
export function timeOfDay(time: number, step: number, clock: Clock): string {
  const digits = step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) - 1e-9));
  // Rounded as a whole, so that 59.9999996 becomes the next minute.
  const rounded = Math.round(time * 10 ** digits) / 10 ** digits;
  const whole = Math.floor(rounded);
  const text = new Date(whole * 1000).toLocaleTimeString("en-GB", {
    hour12: false,
    timeZone: clock === "utc" ? "UTC" : undefined,
  });
  return digits === 0 ? text : text + (rounded - whole).toFixed(digits).slice(1);
}

// A duration with the digits that `step` seconds need: "1.25 s", "0.3 ms", "12 µs".
export function duration(value: number, step: number): string {
  const size = Math.abs(value);
  const [unit, name] =
    size >= 1 || size === 0 ? [1, "s"] : size >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
  if (size >= 120 && step >= 1) return `${Math.floor(size / 60)} min ${Math.round(size % 60)} s`;
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(size / unit).toFixed(digits)} ${name}`;
}
