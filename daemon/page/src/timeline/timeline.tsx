// SPDX-License-Identifier: Apache-2.0
// The newest calls of chosen ranks: one lane for each rank and communicator. A person zooms, moves and
// asks for details; from then on the timeline holds what it shows until "Live".
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type JobAddress, tracePath } from "../api";
import type { Mismatch } from "../jobs/mismatch";
import { Stale, useWidth, Waiting } from "../parts";
import { formatRanks } from "../ranks";
import { duration, timeOfDay, zoneName } from "../timescale";
import { useZone } from "../zone";
import { kKeys, kPan, kZoom, TimelineCanvas } from "./timeline_canvas";
import { spanOf } from "./timeline_lanes";
import { type TimelineState, useTimeline } from "./timeline_state";
import { CallsTable } from "./timeline_table";
import { atMoment, describe, stepsInWords } from "./timeline_words";

function download(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.setAttribute("href", address); // reports hold no "href=": see HtmlTest
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// Saves the calls of the window, as far as the daemon has them. Returns why it could not.
async function save(state: TimelineState, job: JobAddress): Promise<string> {
  if (state.source === undefined) return "";
  const ranks = formatRanks(state.source.ranks.map((rank) => rank.rank));
  const { from, to } = state.picture.shown;
  try {
    const response = await fetch(tracePath(job, ranks, from * 1000, to * 1000));
    const text = await response.text();
    if (!response.ok) return text.trim();
    download(`${job.job}.trace.json`, text);
    return "";
  } catch {
    return "the daemon does not answer";
  }
}

function Legend({ mismatch }: { mismatch: Mismatch | undefined }) {
  const entries: [color: string, words: string][] = [
    ["--bar-host", "Above: the host inside the call"],
    ["--bar-done", "Below: the GPU has finished it"],
    ["--bar-queued", "Queued or running on the GPU"],
    ["--bar-waits", "Waits for others"],
  ];
  return (
    <div class="legend">
      {entries.map(([color, words]) => (
        <span key={color}>
          <span class="swatch" style={{ background: `var(${color})` }} aria-hidden="true" /> {words}
        </span>
      ))}
      {mismatch !== undefined && <span>≠ Another call than the others</span>}
    </div>
  );
}

function Action({
  name,
  hint,
  isOff = false,
  onClick,
  children,
}: {
  name: string;
  hint: string;
  isOff?: boolean;
  onClick: () => void;
  children: ComponentChildren;
}) {
  return (
    <button type="button" aria-label={name} title={hint} disabled={isOff} onClick={onClick}>
      {children}
    </button>
  );
}

function Actions({ state, job }: { state: TimelineState; job: JobAddress }) {
  const { zoomBy, panBy, isWhole } = state;
  const [problem, setProblem] = useState("");
  return (
    <div class="actions timeline-actions" role="group" aria-label="timeline">
      <Action name="Zoom in" hint="Zoom in (+)" onClick={() => zoomBy(1 / kZoom)}>
        +
      </Action>
      <Action name="Zoom out" hint="Zoom out (−)" isOff={isWhole} onClick={() => zoomBy(kZoom)}>
        −
      </Action>
      <Action name="Earlier" hint="Earlier (←)" isOff={isWhole} onClick={() => panBy(-kPan)}>
        ←
      </Action>
      <Action name="Later" hint="Later (→)" isOff={isWhole} onClick={() => panBy(kPan)}>
        →
      </Action>
      <button type="button" disabled={!state.isHeld} onClick={state.goLive}>
        Live
      </button>
      <label>
        Times{" "}
        <select
          value={state.picture.clock === "ago" ? "ago" : "day"}
          onChange={(event) => state.setClock(event.currentTarget.value === "ago")}
        >
          <option value="ago">ago</option>
          <option value="day">of the day</option>
        </select>
      </label>
      <button
        type="button"
        title="The calls in this window, for ui.perfetto.dev or chrome://tracing"
        onClick={() => void save(state, job).then(setProblem)}
      >
        Download trace
      </button>
      {problem !== "" && (
        <span class="problem" role="alert">
          {problem}
        </span>
      )}
    </div>
  );
}

// The chosen call, the moment under the cursor, and what part of the time is shown.
function Hints({ state }: { state: TimelineState }) {
  const { lanes, now, shown, clock, choice, cursor } = state.picture;
  const zone = useZone();
  const steps = stepsInWords(lanes);
  return (
    <>
      <p class="hint" aria-live="polite">
        {spanOf(lanes, choice) !== undefined && describe(state.picture, choice!)}
      </p>
      <p class="hint">{cursor !== undefined && atMoment(state.picture, cursor)}</p>
      <p class="hint soft">
        {duration(shown.to - shown.from, (shown.to - shown.from) / 100)} shown
        {clock === "ago"
          ? `, times before ${timeOfDay(now, 1, zone)} (${zoneName(zone, now)})`
          : `, times in ${zoneName(clock, now)}`}
        {state.isHeld && "; held: it does not follow the job until Live"}
      </p>
      {steps !== "" && <p class="hint soft">Steps: {steps}.</p>}
    </>
  );
}

function AsTable({ state }: { state: TimelineState }) {
  const [open, setOpen] = useState(false);
  const { lanes, now } = state.picture;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && <CallsTable lanes={lanes} now={now} mismatch={state.picture.mismatch} />}
    </details>
  );
}

export function Timeline({
  job,
  ranks,
  mismatch,
  moment,
  onMoment,
}: {
  job: JobAddress;
  ranks: string;
  mismatch?: Mismatch | undefined;
  moment?: number | undefined;
  onMoment?: (time: number) => void;
}) {
  const [watch, width] = useWidth();
  const state = useTimeline(job, ranks, width, moment, mismatch);
  if (state.live.value === undefined) return <Waiting live={state.live} what="calls" />;
  const hasLanes = state.picture.lanes.length > 0;
  return (
    <>
      <Stale live={state.live} />
      {!hasLanes && (
        <p class="soft">
          The daemon has no calls of these ranks. In very large jobs it keeps only the calls of
          ranks in an incident.
        </p>
      )}
      {hasLanes && <Actions state={state} job={job} />}
      <div ref={watch} class="timeline">
        {hasLanes && <TimelineCanvas state={state} ranks={ranks} onMoment={onMoment} />}
      </div>
      {hasLanes && (
        <>
          <Hints state={state} />
          <Legend mismatch={mismatch} />
          <p class="soft hint">
            Ctrl and the wheel zoom, dragging moves; on the timeline {kKeys}.
            {onMoment !== undefined &&
              " A double click, or m, shows the ranks and communicators as of that moment."}
          </p>
          <AsTable state={state} />
        </>
      )}
    </>
  );
}
