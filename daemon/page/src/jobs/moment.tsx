// SPDX-License-Identifier: Apache-2.0
// The moment of the last hour that the views of a job show: the parameter `at` of the address. Without
// it they show the present.
import { useEffect, useState } from "preact/hooks";
import { setParameters } from "../address";
import type { JobView } from "../messages";
import { timeOfDay, zoneName } from "../timescale";
import { useZone } from "../zone";

const kLeastSeconds = 5; // the daemon keeps a state every five seconds
const kPatienceMs = 150; // while the slider moves

// What the slider shows, and the view that is there.
export function Moment({ view, at }: { view: JobView; at: string }) {
  const zone = useZone();
  const [dragged, setDragged] = useState<number | undefined>(undefined);
  useEffect(() => {
    if (dragged === undefined) return;
    const timer = setTimeout(() => {
      setParameters({ at: new Date(dragged * 1000).toISOString() });
      setDragged(undefined);
    }, kPatienceMs);
    return () => clearTimeout(timer);
  }, [dragged]);
  if (view.kept_from === undefined) return null;
  const from = Math.ceil(Date.parse(view.kept_from) / 1000);
  const to = at === "" ? Math.floor(Date.parse(view.now) / 1000) : Math.floor(Date.now() / 1000);
  const shown = dragged ?? (at === "" ? to : Math.floor(Date.parse(at) / 1000));
  if (to - from < kLeastSeconds) return null;
  // The slider counts seconds before now, so that "now" stays at its end while time passes.
  const words = at === "" && dragged === undefined ? "now" : timeOfDay(shown, 1, zone);
  return (
    <div class="moment" role="group" aria-label="moment">
      <label>
        Show the job as of{" "}
        <input
          type="range"
          min={from - to}
          max={0}
          step={1}
          value={shown - to}
          aria-valuetext={words}
          onInput={(event) => setDragged(to + Number(event.currentTarget.value))}
        />
      </label>{" "}
      <output>{words}</output>{" "}
      {at !== "" && (
        <button type="button" onClick={() => setParameters({ at: "" })}>
          Back to now
        </button>
      )}
    </div>
  );
}

// Says that the daemon has no state of this moment, and leads to what it has. `problem`: its answer,
// with times in UTC.
export function NoMoment({ problem }: { problem: string }) {
  const oldest = /\d{4}-\d\d-\d\dT[\d:]+(Z|[+-][\d:]+)/.exec(problem)?.[0];
  const zone = useZone();
  const words = (at: string) => timeOfDay(Date.parse(at) / 1000, 1, zone);
  return (
    <>
      <p class="problem" role="alert">
        {oldest === undefined ? problem : problem.replace(oldest, words(oldest))}
      </p>
      <p>
        {oldest !== undefined && (
          <button type="button" onClick={() => setParameters({ at: oldest })}>
            Show {words(oldest)}
          </button>
        )}{" "}
        <button type="button" onClick={() => setParameters({ at: "" })}>
          Back to now
        </button>
      </p>
    </>
  );
}

// Says that the views below are not of the present.
export function PastNotice({ view }: { view: JobView }) {
  const zone = useZone();
  if (!view.is_kept) return null;
  const at = Math.floor(Date.parse(view.now) / 1000);
  return (
    <p class="past" role="status">
      This is the state of {timeOfDay(at, 1, zone)} ({zoneName(zone, at)}). Processes and the last
      calls are of now.
    </p>
  );
}
