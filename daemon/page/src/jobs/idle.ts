// SPDX-License-Identifier: Apache-2.0
// What jobs that stand still cost: in GPUs where their ranks have GPUs, else in ranks. Pure.
import { plural } from "../format";
import type { JobStatus } from "../messages";
import { rankHours } from "../totals";

export function standsStill(job: JobStatus): boolean {
  return job.state === "hung" || job.state === "suspected";
}

// When the job came into its state, in milliseconds since 1970; 0 if that is unknown.
export function since(job: JobStatus): number {
  const opened = standsStill(job) ? job.last_incident?.opened_at : undefined;
  const ended = job.state === "ended" ? job.ended_at : undefined;
  return Date.parse(opened ?? ended ?? job.since) || 0;
}

function size(job: JobStatus): number {
  return job.gpus || job.ranks;
}

// GPUs, or ranks, times the milliseconds up to `now`; 0 if the job does not stand still, or the time at
// which it stopped is unknown.
export function lost(job: JobStatus, now: number): number {
  const from = since(job);
  return standsStill(job) && from > 0 ? size(job) * Math.max(0, now - from) : 0;
}

// "16,388 GPUs idle in 2 jobs; 12.3 GPU-hours lost so far"; empty if no job stands still. Says "ranks" if
// one of the jobs has no GPU.
export function idleInWords(jobs: JobStatus[], now: number): string {
  const still = jobs.filter(standsStill);
  if (still.length === 0) return "";
  const unit = still.every((job) => job.gpus > 0) ? "GPU" : "rank";
  const idle = still.reduce((sum, job) => sum + (unit === "GPU" ? job.gpus : job.ranks), 0);
  const hours = still.reduce((sum, job) => sum + lost(job, now), 0) / 3_600_000;
  const words = `${plural(idle, unit)} idle in ${plural(still.length, "job")}`;
  return hours < 0.05 ? words : `${words}; ${rankHours(3600 * hours)} ${unit}-hours lost so far`;
}
