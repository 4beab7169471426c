// SPDX-License-Identifier: Apache-2.0
// Keeps the daemon's data up to date: requests it again after each event of the stream, at most
// twice a second, and regularly without events. Shows a lost connection and reconnects.
import { useEffect, useState } from "preact/hooks";
import { checkSession, goToLogin } from "./session";

const kLeastApartMs = 500;
const kRefreshMs = 2_000; // waits grow without an event
const kAskAgainMs = 1_000;
const kSilenceMs = 12_000; // the daemon sends an event or a comment every 5 s

export interface Link {
  state: "connecting" | "live" | "lost";
  heardAt: number;
}
let link: Link = { state: "connecting", heardAt: 0 };
const linkListeners = new Set<() => void>();
const changeListeners = new Set<() => void>();

function setLink(next: Link): void {
  link = next;
  for (const listener of linkListeners) listener();
}

function heard(): void {
  setLink({ state: "live", heardAt: Date.now() });
}

let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let pause = 1000;

function connect(): void {
  retry = undefined;
  source?.close();
  source = new EventSource("api/v1/events");
  source.addEventListener("open", () => {
    pause = 1000;
    heard();
  });
  source.addEventListener("change", () => {
    heard();
    for (const listener of changeListeners) listener();
  });
  source.addEventListener("error", () => {
    source?.close();
    setLink({ state: "lost", heardAt: link.heardAt });
    void checkSession();
    if (retry === undefined) retry = setTimeout(connect, pause);
    pause = Math.min(pause * 2, 15_000);
  });
}

export function startLive(): void {
  connect();
  setInterval(() => {
    if (!document.hidden && link.state === "live" && Date.now() - link.heardAt > kSilenceMs) {
      setLink({ state: "lost", heardAt: link.heardAt });
      connect();
    }
  }, 2000);
  // A hidden tab needs no connection; browsers allow six to one host.
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
    return () => {
      linkListeners.delete(listener);
    };
  }, []);
  return link;
}

export interface Live<T> {
  value: T | undefined;
  problem: string;
  at: number;
}

const empty = { value: undefined, problem: "", at: 0 };

// `path` is relative to the page's folder; "" requests nothing. `follow` false requests it once.
export function useLive<T>(path: string, follow = true): Live<T> {
  const [stored, setStored] = useState<Live<T> & { path: string }>({ ...empty, path });
  useEffect(() => {
    if (path === "") return undefined;
    let ended = false;
    let fetching = false;
    let again = false;
    let last = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let etag = "";
    // What is stored of this path; what is stored may be of the path before.
    const own = (old: typeof stored) => (old.path === path ? old : { ...empty, path });
    const askAgain = (): void => {
      if (!ended) timer ??= setTimeout(() => void refresh(), kAskAgainMs);
    };
    const refresh = async (): Promise<void> => {
      timer = undefined;
      if (follow && document.hidden && last !== 0) return;
      if (fetching) {
        again = true;
        return;
      }
      fetching = true;
      last = Date.now();
      try {
        const response = await fetch(path, {
          headers: etag === "" ? {} : { "If-None-Match": etag },
        });
        if (ended) return;
        if (response.status === 200) {
          etag = response.headers.get("ETag") ?? "";
          const value = (await response.json()) as T;
          if (!ended) setStored({ path, value, problem: "", at: Date.now() });
        } else if (response.status === 304) {
          setStored((old) => ({ ...own(old), problem: "", at: Date.now() }));
        } else if (response.status === 401) {
          goToLogin();
        } else if (response.headers.has("X-Rollcall-Working")) {
          askAgain();
        } else {
          const problem = (await response.text()).trim();
          const gone = response.status === 404;
          if (ended) return;
          setStored((old) => ({ ...(gone ? { ...empty, path } : own(old)), problem }));
        }
        if (link.state !== "live" && link.heardAt !== 0) setLink({ ...link, heardAt: Date.now() });
      } catch {
        if (!ended) setStored((old) => ({ ...own(old), problem: "the daemon does not respond" }));
        if (!follow) askAgain();
      } finally {
        fetching = false;
        if (again && !ended) {
          again = false;
          soon();
        }
      }
    };
    const soon = (): void => {
      timer ??= setTimeout(() => void refresh(), Math.max(0, last + kLeastApartMs - Date.now()));
    };
    void refresh();
    if (!follow)
      return () => {
        ended = true;
        if (timer !== undefined) clearTimeout(timer);
      };
    changeListeners.add(soon);
    const anyway = setInterval(soon, kRefreshMs);
    return () => {
      ended = true;
      changeListeners.delete(soon);
      clearInterval(anyway);
      if (timer !== undefined) clearTimeout(timer);
    };
  }, [path, follow]);
  return stored.path === path ? stored : empty;
}

// Returns the current time, four times a second while `running`.
export function useClock(running: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, 250);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}
