// SPDX-License-Identifier: Apache-2.0
// What the jobs and incidents that the daemon lists show about hosts. Pure.
import { standsStill } from "../jobs/idle";
import type { JobStatus, JobView, Repeated } from "../messages";
import { formatRanks } from "../ranks";

export interface HostRow {
  host: string;
  jobs: JobStatus[]; // that have not ended
  still: number; // of them, those that stand still
  incidents: number; // with a culprit here; 0 means at most one
}

const collator = new Intl.Collator(undefined, { numeric: true });

// Hosts of jobs that stand still first, then those with the most incidents.
export function hostRows(jobs: JobStatus[], repeated: Repeated[]): HostRow[] {
  const rows = new Map<string, HostRow>();
  for (const job of jobs.filter((one) => one.state !== "ended")) {
    for (const host of job.hosts) {
      const row = rows.get(host) ?? { host, jobs: [], still: 0, incidents: 0 };
      row.jobs.push(job);
      row.still += Number(standsStill(job));
      rows.set(host, row);
    }
  }
  for (const one of repeated) {
    if (one.host === "") continue;
    const row = rows.get(one.host) ?? { host: one.host, jobs: [], still: 0, incidents: 0 };
    rows.set(one.host, { ...row, incidents: one.incidents });
  }
  return [...rows.values()].sort(
    (a, b) =>
      Math.min(b.still, 1) - Math.min(a.still, 1) ||
      b.incidents - a.incidents ||
      collator.compare(a.host, b.host),
  );
}

export interface SilentHost {
  host: string;
  ranks: string; // "64-71"
}

export function silentHosts(view: JobView): SilentHost[] {
  const byHost = new Map<string, number[]>();
  for (const run of view.hosts) {
    for (let rank = run.first_rank; rank < run.first_rank + run.ranks; ++rank) {
      if (!view.maps.some((map) => map.states[rank] === "s")) continue;
      const ranks = byHost.get(run.host);
      if (ranks === undefined) byHost.set(run.host, [rank]);
      else ranks.push(rank);
    }
  }
  return [...byHost].map(([host, ranks]) => ({ host, ranks: formatRanks(ranks) }));
}
