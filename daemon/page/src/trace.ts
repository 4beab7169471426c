// SPDX-License-Identifier: Apache-2.0
// The calls as a trace for Perfetto and chrome://tracing: docs/trace_format.md describes the format,
// which daemon/report/trace.cc writes as well.

import type { JobAddress } from "./api";
import type { Call, CallSpan, CallsResponse, CommunicatorCalls, Incident } from "./messages";
import { formatRanks } from "./ranks";
import type { Span } from "./timescale";

const kIncidentPid = 1_000_000_000;
const kPointToPoint = ["Send", "Recv", "PutSignal", "Signal", "WaitSignal"];

type Event = Record<string, unknown> & { ts: number };

const isOpen = (span: CallSpan) => span.returned_seconds === 0 || span.waits;

// Date.parse() drops what is below a millisecond.
function moment(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  const fraction = /\.\d+/.exec(text)?.[0] ?? "";
  return Date.parse(text.replace(fraction, "")) / 1000 + Number(`0${fraction}`);
}

function rfc3339(seconds: number): string {
  const whole = Math.floor(seconds);
  const micros = Math.round((seconds - whole) * 1e6);
  const at = new Date((whole + Math.floor(micros / 1e6)) * 1000).toISOString().slice(0, 19);
  return `${at}.${String(micros % 1e6).padStart(6, "0")}Z`;
}

export function callName(call: Call): string {
  const operation = call.operation || "a call";
  if (!kPointToPoint.includes(operation)) return `${operation} #${call.position}`;
  return call.root < 0 ? operation : `${operation} peer ${call.root}`;
}

// Only the calls of which a part lies in the window.
export function inWindow(calls: CallsResponse, window: Span): CallsResponse {
  const isIn = (span: CallSpan) =>
    span.entered_seconds <= window.to && (isOpen(span) || span.returned_seconds >= window.from);
  return {
    ...calls,
    ranks: calls.ranks.map((rank) => ({
      ...rank,
      communicators: rank.communicators.map((comm) => ({
        ...comm,
        calls: comm.calls.filter(isIn),
      })),
    })),
  };
}

// Lanes in which a call begins after the one before has ended.
function dealOut(calls: CallSpan[]): CallSpan[][] {
  const lanes: CallSpan[][] = [];
  for (const span of [...calls].sort((a, b) => a.entered_seconds - b.entered_seconds)) {
    const free = lanes.find((lane) => {
      const last = lane[lane.length - 1]!;
      return !isOpen(last) && last.returned_seconds <= span.entered_seconds;
    });
    if (free === undefined) lanes.push([span]);
    else free.push(span);
  }
  return lanes;
}

// `incident`: the one of the job that is open; undefined: none.
export function toTrace(calls: CallsResponse, job: JobAddress, incident?: Incident): string {
  const spans = calls.ranks.flatMap((rank) => rank.communicators.flatMap((comm) => comm.calls));
  const first = spans.reduce((low, span) => Math.min(low, span.entered_seconds), Infinity);
  const last = spans.reduce(
    (high, span) => Math.max(high, span.entered_seconds, span.returned_seconds),
    0,
  );
  const base = Math.floor(Math.min(first, moment(incident?.opened_at) ?? Infinity));
  const end = Math.max(moment(incident?.closed_at) ?? moment(calls.now) ?? 0, last);
  const culprits = new Map((incident?.verdicts[0]?.culprits ?? []).map((one) => [one.rank, one]));
  const events: Event[] = [];

  const ns = (seconds: number) => Math.round((seconds - base) * 1e9);
  const event = (ph: string, name: string, pid: number, tid: number, seconds: number): Event => ({
    name,
    cat: "rollcall",
    ph,
    pid,
    tid,
    ts: ns(seconds) / 1e3,
  });
  const name = (what: string, pid: number, tid: number, args: Record<string, unknown>): void => {
    events.push({ name: what, ph: "M", pid, tid, ts: 0, args });
  };
  const argsOf = (rank: number, comm: CommunicatorCalls, span: CallSpan) => {
    const call = span.call;
    const args: Record<string, unknown> = {
      communicator: comm.communicator.name || comm.communicator.id.slice(0, 8),
      communicator_id: comm.communicator.id,
      communicator_size: comm.communicator.size,
      position: call.position,
      dtype: call.dtype,
      count: call.count,
    };
    if (comm.rank_in_communicator >= 0) args.rank_in_communicator = comm.rank_in_communicator;
    if (call.reduction !== "") args.reduction = call.reduction;
    if (call.root >= 0) args.root = call.root;
    if (call.shape !== "") args.shape = call.shape;
    if (call.logical !== "") args.logical = call.logical;
    if (call.code !== "") args.code = call.code;
    if (span.gpu !== "") args.gpu = span.gpu;
    args.entered_at = rfc3339(span.entered_seconds);
    args.state = span.waits ? "waits" : isOpen(span) ? "has not returned" : "returned";
    if (span.waits && span.returned_seconds > 0)
      args.host_returned_at = rfc3339(span.returned_seconds);
    if (culprits.has(rank)) args.culprit = true;
    const verdict = incident?.verdicts.find(
      (one) =>
        one.communicator?.id === comm.communicator.id &&
        one.call?.position === call.position &&
        !kPointToPoint.includes(call.operation),
    );
    if (verdict !== undefined) {
      args.cause = verdict.cause;
      args.certainty = verdict.certainty;
      args.culprits = verdict.culprit_ranks;
    }
    return args;
  };

  if (incident !== undefined) {
    name("process_name", kIncidentPid, 1, { name: `incident ${incident.id}` });
    name("process_sort_index", kIncidentPid, 1, { sort_index: -1 });
    name("thread_name", kIncidentPid, 1, { name: "life of the incident" });
    const life: [string, string | undefined][] = [
      ["opened", incident.opened_at],
      ["confirmed", incident.confirmed_at],
      ["closed", incident.closed_at],
    ];
    for (const [what, text] of life) {
      const at = moment(text);
      if (at === undefined) continue;
      const args = { at: rfc3339(at), summary: incident.verdicts[0]?.summary };
      events.push({ ...event("i", what, kIncidentPid, 1, at), s: "g", args });
    }
  }
  for (const rank of calls.ranks) {
    name("process_name", rank.rank, 0, { name: `rank ${rank.rank}` });
    name("process_sort_index", rank.rank, 0, { sort_index: rank.rank });
    const culprit = culprits.get(rank.rank);
    if (culprit !== undefined) {
      const verdict = incident!.verdicts[0]!;
      const parts = ["culprit", verdict.cause, verdict.certainty];
      if (culprit.host !== "") parts.push(culprit.host);
      if (culprit.pid > 0) parts.push(`pid ${culprit.pid}`);
      name("process_labels", rank.rank, 0, { labels: parts.join(", ") });
    }
    let tid = 0;
    for (const comm of rank.communicators) {
      dealOut(comm.calls).forEach((lane, index) => {
        ++tid;
        const title = comm.communicator.name || comm.communicator.id.slice(0, 8);
        name("thread_name", rank.rank, tid, {
          name: index === 0 ? title : `${title}, at the same time`,
        });
        name("thread_sort_index", rank.rank, tid, { sort_index: tid });
        for (const span of lane) {
          const args = argsOf(rank.rank, comm, span);
          const text = callName(span.call);
          const begin = event(isOpen(span) ? "B" : "X", text, rank.rank, tid, span.entered_seconds);
          if (!isOpen(span)) {
            const long = ns(span.returned_seconds) - ns(span.entered_seconds);
            events.push({ ...begin, args, dur: Math.max(long, 0) / 1e3 });
            continue;
          }
          const mark = `${text} ${span.waits ? "waits" : "has not returned"}`;
          events.push({ ...begin, args });
          events.push({ ...event("i", mark, rank.rank, tid, end), s: "t", args });
        }
      });
    }
  }
  const verdict = incident?.verdicts[0];
  const about = {
    format: "rollcall-trace-1",
    job: job.job,
    tenant: incident?.tenant ?? job.tenant,
    attempt: incident?.attempt ?? (job.attempt === "" ? undefined : Number(job.attempt)),
    ranks: formatRanks(calls.ranks.map((rank) => rank.rank)),
    calls: spans.length,
    source: "calls",
    covers_from: rfc3339(first),
    covers_until: rfc3339(end),
    ts_begins_at: rfc3339(base),
    incident: incident?.id,
    incident_state: incident?.state,
    opened_at: incident?.opened_at && rfc3339(moment(incident.opened_at)!),
    cause: verdict?.cause,
    certainty: verdict?.certainty,
    culprits: verdict?.culprit_ranks,
    summary: verdict?.summary,
  };
  return JSON.stringify({
    displayTimeUnit: "ms",
    baseTimeNanoseconds: base * 1e9,
    otherData: about,
    traceEvents: events,
  });
}

export function download(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.setAttribute("href", address); // reports hold no "href=": see HtmlTest
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
