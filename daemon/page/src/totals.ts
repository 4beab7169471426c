// SPDX-License-Identifier: Apache-2.0
// The numbers and ranks of a verdict. Its lists have at most 1,024 entries; its totals cover all.
// Incidents of earlier releases have no totals, and their lists are whole.
import { count } from "./format";
import type { Verdict, WaitEdge } from "./messages";
import { formatRanks, shortenRanks } from "./ranks";

export interface RankSet {
  total: number;
  ranks: string; // "0-7,12"
}

function rankSet(total: number, ranks: string, listed: number[]): RankSet {
  return { total: Math.max(total, listed.length), ranks: ranks || formatRanks(listed) };
}

// "36.4", "1,400"
export function rankHours(rankSeconds: number): string {
  const value = rankSeconds / 3600;
  return value >= 100 ? count(Math.round(value)) : value.toFixed(1);
}

export function culpritRanks(verdict: Verdict): RankSet {
  const listed = verdict.culprits.map((one) => one.rank);
  return rankSet(verdict.culprits_total, verdict.culprit_ranks, listed);
}

export function waitingRanks(verdict: Verdict): RankSet {
  return rankSet(verdict.waiting_total, verdict.waiting_rank_ranges, verdict.waiting_ranks);
}

export function edgeEnds(edge: WaitEdge): { from: RankSet; to: RankSet } {
  return {
    from: rankSet(edge.from_total, edge.from_ranges, edge.from),
    to: rankSet(edge.to_total, edge.to_ranges, edge.to),
  };
}

// "rank 3", "ranks 0-2,4,…"; "" if the set is empty.
export function rankWords({ total, ranks }: RankSet, most: number): string {
  return total === 0 ? "" : `${total === 1 ? "rank" : "ranks"} ${shortenRanks(ranks, most)}`;
}

// The hosts of the culprits: "node-1, node-2, …, 2,500 in all"
export function culpritHosts(verdict: Verdict, most: number): string {
  const hosts = [...new Set(verdict.culprits.map((one) => one.host).filter((host) => host !== ""))];
  const total = Math.max(verdict.culprit_hosts_total, hosts.length);
  const shown = hosts.slice(0, most).join(", ");
  return total > most ? `${shown}, …, ${count(total)} in all` : shown;
}
