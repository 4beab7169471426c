// SPDX-License-Identifier: Apache-2.0
// The state of a process in words.
import type { ProcessStatus } from "../messages";

export function ending(process: ProcessStatus): string {
  if (process.exit_signal > 0) return `killed by signal ${process.exit_signal}`;
  if (process.liveness === "exited" || process.liveness === "died") {
    return process.exit_code >= 0
      ? `${process.liveness}, exit code ${process.exit_code}`
      : process.liveness;
  }
  return process.liveness === "ended" ? "ended (exit status unknown)" : process.liveness;
}

const stateWords: Record<string, string> = {
  R: "running",
  S: "sleeping",
  D: "in the kernel",
  T: "stopped",
  t: "traced",
  Z: "zombie",
};

// "alive, sleeping, uses CPU"
export function life(process: ProcessStatus): string {
  const kernel =
    process.liveness === "alive" && process.state !== ""
      ? `, ${stateWords[process.state] ?? process.state}`
      : "";
  return ending(process) + kernel + (process.cpu_moving ? ", uses CPU" : "");
}
