// SPDX-License-Identifier: Apache-2.0
// The characters of RankMap.states, with their meaning, colour and sign.

export interface StateKind {
  key: string;
  words: string;
  color: string;
  sign: string;
}

// The worst state last. A cell of several ranks shows its worst state.
export const stateKinds: StateKind[] = [
  { key: "-", words: "in no communicator of this kind", color: "--cell-none", sign: "" },
  { key: ".", words: "waits for nobody", color: "--cell-moves", sign: "" },
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
];

const byKey = new Map(stateKinds.map((kind, index) => [kind.key, index]));

export function severity(state: string): number {
  if (state >= "1" && state <= "9") return byKey.get("1")!;
  return byKey.get(state) ?? 0;
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

export function worst(states: string): string {
  let result = "-";
  for (const state of states) if (severity(state) > severity(result)) result = state;
  return result;
}
