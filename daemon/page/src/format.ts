// SPDX-License-Identifier: Apache-2.0
// Formats values for people.
import type { Call, CommunicatorRef, Culprit, Frame, GraphCall, VersionInUse } from "./messages";
import type { Zone } from "./timescale";

export function seconds(value: number): string {
  if (value < 0.001) return "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];
export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const whole = new Intl.NumberFormat();
export function count(value: number): string {
  return whole.format(value);
}

// The number of the last of `entered` calls. Calls count from #0, as in verdicts.
export function lastCall(entered: number): string {
  return entered < 1 ? "none" : `#${count(entered - 1)}`;
}

export function lastCalls(comm: { position_min: number; position_max: number }): string {
  const last = lastCall(comm.position_max);
  return comm.position_max > comm.position_min ? `${lastCall(comm.position_min)} to ${last}` : last;
}

// Uses the reader's format, and the time zone of the page (zone.tsx). The element's title has the exact
// time.
const formats = {
  local: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }),
  utc: new Intl.DateTimeFormat(undefined, {
    dateStyle: "medium",
    timeStyle: "medium",
    timeZone: "UTC",
  }),
};
let moment = formats.local;
export function setZone(zone: Zone): void {
  moment = formats[zone];
}
export function time(text: string | undefined): string {
  const value = text === undefined || text === "" ? NaN : Date.parse(text);
  return Number.isNaN(value) ? "" : moment.format(value);
}

// The amount of data in a call: elements and their type, or bytes for MPI.
function amount(value: Call): string {
  if (value.dtype === "") return value.count > 0 ? `${count(value.count)} bytes` : "";
  const layout = [value.logical, value.shape].filter((text) => text !== "").join(" ");
  return `${value.dtype} × ${count(value.count)}${layout === "" ? "" : ` as ${layout}`}`;
}

// "3, launch 812, call 3 of 5"
export function graph(value: GraphCall | undefined): string {
  if (value === undefined) return "";
  const place = `call ${count(value.call)} of ${count(value.calls)}`;
  return `${count(value.graph)}, launch ${count(value.launch)}, ${place}`;
}

// "812 (validation)"
export function step(value: { step?: number; phase: string }): string {
  if (value.step === undefined) return "";
  return value.phase === "" ? count(value.step) : `${count(value.step)} (${value.phase})`;
}

export function call(value: Call | undefined): string {
  if (value === undefined || value.operation === "") return "";
  const parts = [amount(value), value.reduction];
  if (value.root >= 0) parts.push(`root ${value.root}`);
  const inside = parts.filter((part) => part !== "").join(", ");
  return inside === "" ? value.operation : `${value.operation}(${inside})`;
}

export function communicator(value: CommunicatorRef | undefined): string {
  if (value === undefined || (value.id === "" && value.name === "")) return "";
  const kind = value.kind === "" ? "" : `${value.kind} `;
  return value.name !== ""
    ? `${kind}"${value.name}" (${value.size} ranks)`
    : `${kind}${value.id} (${value.size} ranks)`;
}

// "rank 3", or "rank 3 (rank 1 of job engine)"
function rankInWords(value: Culprit): string {
  if (value.job === "") return `rank ${value.rank}`;
  const there = value.job_rank === undefined ? "" : `rank ${value.job_rank} `;
  const attempt = value.job_attempt ? ` attempt ${value.job_attempt}` : "";
  return `rank ${value.rank} (${there}of job ${value.job}${attempt})`;
}

export function culpritParts(value: Culprit): string[] {
  const parts = [rankInWords(value)];
  if (value.host !== "") parts.push(value.host);
  if (value.node !== "" && value.node !== value.host) parts.push(`node ${value.node}`);
  if (value.pod !== "") parts.push(`pod ${value.pod}`);
  if (value.pid > 0) parts.push(`pid ${value.pid}`);
  if (value.device >= 0) parts.push(`GPU ${value.device}`);
  if (value.step !== undefined) parts.push(`step ${step(value)}`);
  return parts;
}

export function culprit(value: Culprit): string {
  return culpritParts(value).join(", ");
}

export function frame(value: Frame): string {
  const name = value.function !== "" ? value.function : value.address;
  const place = value.file === "" ? "" : `  ${value.file}${value.line > 0 ? `:${value.line}` : ""}`;
  return name + place + (value.module !== "" && value.function !== "" ? `  (${value.module})` : "");
}

// "NCCL 2.27.3"; if ranks differ: "NCCL 2.26.2 (ranks 0-6), NCCL 2.27.3 (rank 7)"
export function versions(list: VersionInUse[]): string {
  return list
    .map((one) => {
      const text = `${one.component} ${one.version}`;
      if (list.filter((other) => other.component === one.component).length === 1) return text;
      return `${text} (${/[,-]/.test(one.ranks) ? "ranks" : "rank"} ${one.ranks})`;
    })
    .join(", ");
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
