// SPDX-License-Identifier: Apache-2.0
// Small parts that several views share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatAddress } from "./address";
import { count, time } from "./format";
import type { Live } from "./live";
import type { Incident } from "./messages";
import { useZone } from "./zone";

const signs: Record<string, string> = {
  running: "▶",
  waiting: "⏳",
  suspected: "?",
  hung: "■",
  ended: "✓",
  "ended hung": "■",
  "ended, died": "✗",
  "ended, exit unknown": "•",
  confirmed: "■",
  resolved: "✓",
};

// Shows a state by word, sign and colour together.
export function State({ state }: { state: string }) {
  return (
    <span class={`state state-${state.replace(",", "")}`}>
      <span aria-hidden="true">{signs[state] ?? "•"}</span> {state}
    </span>
  );
}

export function Time({ at }: { at: string | undefined }) {
  useZone();
  return at === undefined || at === "" ? null : (
    <time dateTime={at} title={at}>
      {time(at)}
    </time>
  );
}

// The default tenant's jobs have the shortest addresses.
export function JobLink({ job, tenant = "" }: { job: string; tenant?: string }) {
  const other = tenant === "default" ? "" : tenant;
  return (
    <a href={formatAddress(["job", job], { tenant: other })}>
      {other === "" ? job : `${other}/${job}`}
    </a>
  );
}

export function IncidentLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return <a href={formatAddress(["incident", id])}>{children ?? id}</a>;
}

// For lists: who takes care of the incident, and whether the hang has come back.
export function TakenBy({ incident }: { incident: Incident }) {
  const words = [
    incident.acknowledged === undefined ? "" : `acknowledged by ${incident.acknowledged.who}`,
    incident.repeat?.sentence ?? "",
  ].filter((one) => one !== "");
  return words.length === 0 ? null : <div class="soft">{words.join("; ")}</div>;
}

// Shown before the data is there: the reason.
export function Waiting({ live, what }: { live: Live<unknown>; what: string }) {
  if (live.problem !== "")
    return (
      <p class="problem" role="alert">
        {live.problem}
      </p>
    );
  return (
    <p class="soft" role="status">
      Loading {what} …
    </p>
  );
}

// Shown when the data is too old.
export function Stale({ live }: { live: Live<unknown> }) {
  if (live.problem === "" || live.value === undefined) return null;
  return (
    <p class="problem" role="alert">
      Not up to date: {live.problem}. Showing data from{" "}
      <Time at={new Date(live.at).toISOString()} />.
    </p>
  );
}

export function Section({
  title,
  id,
  children,
  aside,
}: {
  title: string;
  id?: string;
  children: ComponentChildren;
  aside?: ComponentChildren;
}) {
  return (
    <section id={id}>
      <div class="section-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(0);
  const observer = useRef<ResizeObserver | undefined>(undefined);
  useEffect(() => () => observer.current?.disconnect(), []);
  const [watch] = useState(() => (element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (element === null) return;
    observer.current = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.current.observe(element);
    setWidth(element.clientWidth);
  });
  return [watch, width];
}

// A column's heading, and the class of the heading: "number" for numbers.
export type Column = [heading: ComponentChildren, kind?: "number"];

// A table that scrolls on its own if it is wider than the page. Screen readers call it `label`.
export function Table({
  label,
  columns,
  children,
  kind,
}: {
  label: string;
  columns: Column[];
  children: ComponentChildren;
  kind?: string;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={kind}>
        <thead>
          <tr>
            {columns.map(([heading, number], index) => (
              <th key={index} class={number}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

// Names and values; leaves out what has no value.
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts
        .filter(
          ([, value]) => value !== "" && value !== null && value !== undefined && value !== false,
        )
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

// Pages of a long list.
export function Pager({
  offset,
  limit,
  total,
  onChange,
}: {
  offset: number;
  limit: number;
  total: number;
  onChange: (offset: number) => void;
}) {
  if (total <= limit && offset === 0) return null;
  return (
    <p class="pager">
      <button
        type="button"
        disabled={offset === 0}
        onClick={() => onChange(Math.max(0, offset - limit))}
      >
        Previous
      </button>
      <span>
        {count(offset + 1)} to {count(Math.min(offset + limit, total))} of {count(total)}
      </span>
      <button
        type="button"
        disabled={offset + limit >= total}
        onClick={() => onChange(offset + limit)}
      >
        Next
      </button>
    </p>
  );
}

// Also works on pages without HTTPS, where browsers do not allow access to the clipboard.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
