// SPDX-License-Identifier: Apache-2.0
// The one time zone of all times on the page: the reader's own, or UTC. The reader's choice lasts.
import { useEffect, useState } from "preact/hooks";
import { setZone as formatIn } from "./format";
import { type Zone, zoneName } from "./timescale";

const kKey = "rollcall-zone";
const changed = new EventTarget();
let chosen: Zone = "local";
try {
  if (localStorage.getItem(kKey) === "utc") chosen = "utc";
} catch {
  /* the choice lasts as long as the page */
}
formatIn(chosen);

function choose(zone: Zone): void {
  chosen = zone;
  formatIn(zone);
  try {
    localStorage.setItem(kKey, zone);
  } catch {
    /* the choice lasts as long as the page */
  }
  changed.dispatchEvent(new Event("change"));
}

// Redraws when the zone changes; returns the current one.
export function useZone(): Zone {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    changed.addEventListener("change", listener);
    return () => changed.removeEventListener("change", listener);
  }, []);
  return chosen;
}

export function ZoneSwitch() {
  const zone = useZone();
  return (
    <label class="zone">
      <span class="hidden">Time zone</span>
      <select value={zone} onChange={(event) => choose(event.currentTarget.value as Zone)}>
        {(["local", "utc"] as const).map((one) => (
          <option key={one} value={one}>
            {zoneName(one)}
            {one === "local" && zoneName(one) === zoneName("utc") && " (here)"}
          </option>
        ))}
      </select>
    </label>
  );
}
