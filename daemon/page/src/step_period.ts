// SPDX-License-Identifier: Apache-2.0
// The step of a training loop, from the calls that a rank repeats on a communicator. As strict as the
// daemon's own (docs/verdicts.md, "A rank's own past"): three steps and 24 calls, 40 for steps of
// up to four calls.
import type { CallSpan } from "./messages";

const kSteps = 3;
const kLeastCalls = 24;
const kLeastCallsOfShortSteps = 40;
const kShortStep = 4;

export interface Step {
  calls: number;
  seconds: number; // the median of the shown steps
}

function kindOf({ call }: CallSpan): string {
  return [call.operation, call.dtype, call.count, call.reduction, call.root].join(" ");
}

// undefined: the calls do not repeat, or are too few, or are all alike.
export function findStep(calls: CallSpan[]): Step | undefined {
  const kinds = calls.map(kindOf);
  for (let period = 2; period * kSteps <= kinds.length; ++period) {
    const least = period <= kShortStep ? kLeastCallsOfShortSteps : kLeastCalls;
    const repeated = Math.max(period * kSteps, least);
    if (repeated > kinds.length) continue;
    const newest = kinds.slice(-repeated);
    if (newest.every((kind) => kind === newest[0])) return undefined;
    if (!newest.every((kind, i) => i < period || kind === newest[i - period])) continue;
    const times = calls
      .slice(-repeated)
      .map((span, i, all) =>
        i < period ? NaN : span.entered_seconds - all[i - period]!.entered_seconds,
      )
      .filter((value) => !Number.isNaN(value))
      .sort((a, b) => a - b);
    return { calls: period, seconds: times[Math.floor(times.length / 2)]! };
  }
  return undefined;
}
