// SPDX-License-Identifier: Apache-2.0
// Small parts that several views share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { addressOf } from "./address";
import { time } from "./format";
import type { Live } from "./live";

const signs: Record<string, string> = {
  running: "▶", waiting: "⏳", suspected: "?", hung: "■", ended: "✓", confirmed: "■", resolved: "✓",
};

// A word, a sign and a colour: none of them alone.
export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}><span aria-hidden="true">{signs[state] ?? "•"}</span> {state}</span>;
}

export function Time({ at }: { at: string | undefined }) {
  return at === undefined || at === "" ? null : <time dateTime={at} title={at}>{time(at)}</time>;
}

export function JobLink({ job }: { job: string }) {
  return <a href={addressOf(["job", job])}>{job}</a>;
}

export function IncidentLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return <a href={addressOf(["incident", id])}>{children ?? id}</a>;
}

// Before there is anything to show: why not.
export function Waiting({ live, what }: { live: Live<unknown>; what: string }) {
  if (live.problem !== "") return <p class="problem" role="alert">{live.problem}</p>;
  return <p class="soft" role="status">loading {what} …</p>;
}

// What is shown is older than it should be.
export function Stale({ live }: { live: Live<unknown> }) {
  if (live.problem === "" || live.value === undefined) return null;
  return <p class="problem" role="alert">Not up to date: {live.problem}. Showing data from {time(new Date(live.at).toISOString())}.</p>;
}

export function Section({ title, id, children, aside }: {
  title: string; id?: string; children: ComponentChildren; aside?: ComponentChildren;
}) {
  return (
    <section id={id}>
      <div class="section-head"><h2>{title}</h2>{aside}</div>
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

// Pages of a long list.
export function Pager({ offset, limit, total, onChange }: {
  offset: number; limit: number; total: number; onChange: (offset: number) => void;
}) {
  if (total <= limit && offset === 0) return null;
  return (
    <p class="pager">
      <button disabled={offset === 0} onClick={() => onChange(Math.max(0, offset - limit))}>earlier</button>
      <span>{offset + 1} to {Math.min(offset + limit, total)} of {total}</span>
      <button disabled={offset + limit >= total} onClick={() => onChange(offset + limit)}>later</button>
    </p>
  );
}

// Works also where the browser keeps its clipboard from pages that did not come by HTTPS.
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
