// SPDX-License-Identifier: Apache-2.0
// Formats and parses sets of ranks like "0-2,4-63".

export function formatRanks(ranks: number[], most = Infinity): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const runs: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end]! + 1) ++end;
    runs.push(end === i ? `${sorted[i]}` : `${sorted[i]}-${sorted[end]}`);
    i = end + 1;
    if (runs.length >= most && i < sorted.length) return `${runs.join(",")},…`;
  }
  return runs.join(",");
}

// Shortens text like "0-2,4,6,8" to its first `most` runs: "0-2,4,…".
export function shortenRanks(ranks: string, most: number): string {
  const runs = ranks.split(",");
  return runs.length > most ? `${runs.slice(0, most).join(",")},…` : ranks;
}

// Whether a list like "0-2,4" has the rank.
export function hasRank(ranks: string, rank: number): boolean {
  return ranks.split(",").some((run) => {
    const [first, last = first] = run.split("-").map(Number);
    return first !== undefined && first <= rank && rank <= last!;
  });
}

// Puts this character at the ranks of a list like "0-2,4" in a text with one character for each rank.
export function replaceRanks(states: string, ranks: string, by: string): string {
  const all = [...states];
  for (const run of ranks.split(",")) {
    const [first, last = first] = run.split("-").map(Number);
    if (first !== undefined && !Number.isNaN(first))
      all.fill(by, first, Math.min(last! + 1, all.length));
  }
  return all.join("");
}

// Ignores text that is not a rank. Returns at most `most` ranks.
export function parseRanks(text: string, most: number): number[] {
  const ranks: number[] = [];
  for (const part of text.split(",")) {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (match === null) continue;
    const last = Number(match[2] ?? match[1]);
    for (let rank = Number(match[1]); rank <= last && ranks.length < most; ++rank) ranks.push(rank);
  }
  return [...new Set(ranks)];
}
