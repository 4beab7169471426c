// SPDX-License-Identifier: Apache-2.0
// What jobs that stand still cost. The daemon's list of jobs has no number of GPUs, so ranks count; most
// programs have one GPU for each rank. Pure.
import { plural } from "./format";
import type { JobStatus } from "./messages";
import { rankHours } from "./totals";

export function standsStill(job: JobStatus): boolean {
  return job.state === "hung" || job.state === "suspected";
}

// When the job came into its state, in milliseconds since 1970; 0 if unknown.
export function since(job: JobStatus): number {
  const opened = standsStill(job) ? job.last_incident?.opened_at : undefined;
  const ended = job.state === "ended" ? job.ended_at : undefined;
  return Date.parse(opened ?? ended ?? job.since) || 0;
}

// Ranks times the milliseconds up to `now`; 0 if the job does not stand still, or since when is not
// known.
export function lost(job: JobStatus, now: number): number {
  const from = since(job);
  return standsStill(job) && from > 0 ? job.ranks * Math.max(0, now - from) : 0;
}

// "16,388 ranks stand idle in 2 jobs; 12.3 rank-hours lost so far"; empty if none does.
export function idleInWords(jobs: JobStatus[], now: number): string {
  const still = jobs.filter(standsStill);
  if (still.length === 0) return "";
  const ranks = still.reduce((sum, job) => sum + job.ranks, 0);
  const hours = still.reduce((sum, job) => sum + lost(job, now), 0) / 3_600_000;
  const verb = ranks === 1 ? "stands" : "stand";
  const words = `${plural(ranks, "rank")} ${verb} idle in ${plural(still.length, "job")}`;
  return hours < 0.05 ? words : `${words}; ${rankHours(3600 * hours)} rank-hours lost so far`;
}
