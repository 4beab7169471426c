// SPDX-License-Identifier: Apache-2.0
// What the daemon says, kept fresh: asked anew whenever its event stream tells of a change, at
// most twice a second, and now and then without one. A lost connection is shown and tried again.
import { useEffect, useState } from "preact/hooks";

const kLeastApart = 500;
const kAskAnyway = 2_000; // waits grow without any change
const kSilence = 12_000; // the daemon says something every 5 s

export interface Link { state: "connecting" | "live" | "lost"; heardAt: number }
let link: Link = { state: "connecting", heardAt: 0 };
const linkListeners = new Set<() => void>();
const changeListeners = new Set<() => void>();

function setLink(next: Link): void {
  link = next;
  for (const listener of linkListeners) listener();
}

function heard(): void { setLink({ state: "live", heardAt: Date.now() }); }

let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let pause = 1000;

function connect(): void {
  retry = undefined;
  source?.close();
  source = new EventSource("api/v1/events");
  source.addEventListener("open", () => { pause = 1000; heard(); });
  source.addEventListener("change", () => {
    heard();
    for (const listener of changeListeners) listener();
  });
  source.addEventListener("error", () => {
    source?.close();
    setLink({ state: "lost", heardAt: link.heardAt });
    retry ??= setTimeout(connect, pause);
    pause = Math.min(pause * 2, 15_000);
  });
}

export function startLive(): void {
  connect();
  setInterval(() => {
    if (!document.hidden && link.state === "live" && Date.now() - link.heardAt > kSilence) {
      setLink({ state: "lost", heardAt: link.heardAt });
      connect();
    }
  }, 2000);
  // A hidden tab needs no connection, of which browsers allow six to one host.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      return;
    }
    connect();
    for (const listener of changeListeners) listener();
  });
}

export function useLink(): Link {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    linkListeners.add(listener);
    return () => { linkListeners.delete(listener); };
  }, []);
  return link;
}

export interface Live<T> { value: T | undefined; problem: string; at: number }

const empty = { value: undefined, problem: "", at: 0 };

// `path` is below the page's own folder; "" asks for nothing. With `follow` false it is asked once.
export function useLive<T>(path: string, follow = true): Live<T> {
  const [held, setHeld] = useState<Live<T> & { path: string }>({ ...empty, path });
  useEffect(() => {
    if (path === "") return undefined;
    let ended = false;
    let asking = false;
    let again = false;
    let last = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let etag = "";
    const ask = async (): Promise<void> => {
      timer = undefined;
      if (document.hidden && last !== 0) return;
      if (asking) { again = true; return; }
      asking = true;
      last = Date.now();
      try {
        const answer = await fetch(path, { headers: etag === "" ? {} : { "If-None-Match": etag } });
        if (ended) return;
        if (answer.status === 200) {
          etag = answer.headers.get("ETag") ?? "";
          const value = (await answer.json()) as T;
          if (!ended) setHeld({ path, value, problem: "", at: Date.now() });
        } else if (answer.status === 304) {
          setHeld((old) => ({ ...old, problem: "", at: Date.now() }));
        } else {
          const problem = (await answer.text()).trim();
          const gone = answer.status === 404;
          setHeld((old) => ({ ...old, value: gone ? undefined : old.value, problem }));
        }
        if (link.state !== "live" && link.heardAt !== 0) setLink({ ...link, heardAt: Date.now() });
      } catch {
        if (!ended) setHeld((old) => ({ ...old, problem: "the daemon does not respond" }));
      } finally {
        asking = false;
        if (again && !ended) { again = false; soon(); }
      }
    };
    const soon = (): void => {
      timer ??= setTimeout(() => void ask(), Math.max(0, last + kLeastApart - Date.now()));
    };
    void ask();
    if (!follow) return () => { ended = true; };
    changeListeners.add(soon);
    const anyway = setInterval(soon, kAskAnyway);
    return () => {
      ended = true;
      changeListeners.delete(soon);
      clearInterval(anyway);
      if (timer !== undefined) clearTimeout(timer);
    };
  }, [path, follow]);
  return held.path === path ? held : empty;
}

// The moment, four times a second, while something on the page grows with it.
export function useClock(running: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => { if (!document.hidden) setNow(Date.now()); }, 250);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}
