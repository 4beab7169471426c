// SPDX-License-Identifier: Apache-2.0
// The characters of RankMap.states, with their meaning, colour and sign.

export interface StateKind {
  key: string;
  words: string;
  color: string;
  sign: string;
}

// The page's own: the daemon does not send it (mismatch.ts).
export const kDiffers = "≠";

// The worst state last. A cell of several ranks shows its worst state.
export const stateKinds: StateKind[] = [
  { key: "-", words: "in no communicator of this kind", color: "--cell-none", sign: "" },
  { key: ".", words: "not waiting", color: "--cell-moves", sign: "" },
  { key: "d", words: "left the communicator", color: "--cell-left", sign: "·" },
  { key: "e", words: "exited normally", color: "--cell-left", sign: "e" },
  { key: "o", words: "waiting on another communicator", color: "--cell-waits", sign: "o" },
  { key: "w", words: "waiting for others", color: "--cell-waits", sign: "w" },
  { key: "i", words: "inside the communicator's creation", color: "--cell-creating", sign: "i" },
  { key: "1", words: "behind others", color: "--cell-behind", sign: "" },
  {
    key: "?",
    words: "no report, although other ranks have one",
    color: "--cell-absent",
    sign: "?",
  },
  { key: "s", words: "its host is silent", color: "--cell-silent", sign: "s" },
  { key: "g", words: "ended (exit status unknown)", color: "--cell-died", sign: "g" },
  { key: "x", words: "died", color: "--cell-died", sign: "x" },
  { key: kDiffers, words: "made another call than the others", color: "--cell-differs", sign: "≠" },
];

// A digit shows how far a rank is behind.
const digits = "123456789";
const bySign = new Map(stateKinds.map((kind, index) => [kind.key, index]));
for (const digit of digits) bySign.set(digit, bySign.get("1")!);

export function severity(state: string): number {
  return bySign.get(state) ?? 0;
}

export function findKind(state: string): StateKind {
  return stateKinds[severity(state)]!;
}

export function describeState(state: string): string {
  if (state >= "1" && state <= "9") {
    const digits = Number(state);
    const from = 2 ** (digits - 1);
    if (digits === 1) return "behind others by 1 call, not waiting";
    const to = digits === 9 ? "or more" : `to ${2 * from - 1}`;
    return `behind others by ${from} ${to} calls, not waiting`;
  }
  return findKind(state).words;
}

// All states, the worst and the farthest behind first.
const worstFirst = [...stateKinds]
  .reverse()
  .flatMap((kind) => (kind.key === "1" ? [...digits].reverse() : [kind.key]));

// A job has one character for each of some ten thousand ranks, and the browser finds a character
// much faster than a loop does.
export function worst(states: string): string {
  return worstFirst.find((state) => states.includes(state)) ?? "-";
}

// The kinds that occur.
export function kindsIn(maps: { states: string }[]): StateKind[] {
  const occurs = (state: string) => maps.some((map) => map.states.includes(state));
  return stateKinds.filter((kind) =>
    kind.key === "1" ? [...digits].some(occurs) : occurs(kind.key),
  );
}
