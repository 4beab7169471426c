// SPDX-License-Identifier: Apache-2.0
// Every view has an address behind the "#", so that the page works below any path.
import { useEffect, useState } from "preact/hooks";

export interface Address {
  path: string[];
  query: URLSearchParams;
}

export function parseAddress(hash: string): Address {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2) as [string, string?];
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { path: parts, query: new URLSearchParams(query) };
}

export function formatAddress(path: string[], query: Record<string, string> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

// The words of a view for the browser's tab and its history.
export function titleOf(path: string[]): string {
  const [view, first, kind, which] = path;
  const what =
    view === "job" && kind !== undefined
      ? `${kind} ${which ?? ""} of ${first}`
      : view === "host"
        ? `host ${first}`
        : path[path.length - 1];
  return what === undefined ? "Rollcall" : `${what} · Rollcall`;
}

export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parseAddress(hash);
}

// Changes parameters of this view's address, without a new entry in the browser's history.
export function setParameters(changes: Record<string, string>): void {
  const { path, query } = parseAddress(location.hash);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, "", formatAddress(path, Object.fromEntries(query)));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
