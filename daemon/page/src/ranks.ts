// SPDX-License-Identifier: Apache-2.0
// Sets of ranks as people write them: "0-2,4-63".

export function formatRanks(ranks: number[], most = Infinity): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const runs: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end]! + 1) ++end;
    runs.push(end === i ? `${sorted[i]}` : `${sorted[i]}-${sorted[end]}`);
    i = end + 1;
    if (runs.length >= most && i < sorted.length) return runs.join(",") + ",…";
  }
  return runs.join(",");
}

// What is no rank is passed over; at most `most` of them.
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
