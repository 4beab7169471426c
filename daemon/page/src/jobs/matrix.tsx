// SPDX-License-Identifier: Apache-2.0
// Ranks by communicators, with one map for each kind of communicator. A cell is one rank, or one
// host if there are too many ranks or the reader chooses so. Each map is one canvas, so that the
// page does not grow with the job. Below each map, the same data is in words.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobAddress } from "../api";
import { count, plural } from "../format";
import { rankAddress } from "../links";
import type { JobView, RankMap } from "../messages";
import { useWidth } from "../parts";
import { replaceRanks } from "../ranks";
import { useTheme } from "../theme";
import { type Cell, draw, fitLayout, hasCulprit, makeCells } from "./matrix_cells";
import { Words } from "./matrix_words";
import type { Mismatch } from "./mismatch";
import { describeState, kDiffers, kindsIn, severity, worst } from "./states";

const kWorthShrinking = 256;
const kMostRankCells = 40_000;

function RankMapView({
  job,
  map,
  view,
  byHost,
  onChoose,
}: {
  job: JobAddress;
  map: RankMap;
  view: JobView;
  byHost: boolean;
  onChoose: (cell: Cell) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [watch, width] = useWidth();
  const [cursor, setCursor] = useState(-1);
  const [hint, setHint] = useState("");
  const cells = useMemo(() => makeCells(map, view.hosts, byHost), [map.states, view.hosts, byHost]);
  const culprits = useMemo(() => new Set(view.culprits), [view.culprits]);
  const group = byHost ? 1 : Math.max(1, view.hosts[0]?.ranks ?? 1);
  const layout = fitLayout(cells.length, width, group);
  const theme = useTheme();
  useEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, cells, layout, culprits, cursor);
  }, [cells, width, culprits, cursor, theme]);

  const select = (index: number): void => {
    const cell = cells[index];
    setCursor(index);
    if (cell === undefined) {
      setHint("");
      return;
    }
    const who =
      cell.ranks === 1
        ? `rank ${cell.first}`
        : `ranks ${cell.first} to ${cell.first + cell.ranks - 1}`;
    setHint(
      who +
        (cell.host === "" ? "" : `, ${cell.host}`) +
        `: ${describeState(cell.state)}` +
        (hasCulprit(cell, culprits) ? "; a culprit" : ""),
    );
  };
  const indexAt = (event: MouseEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    const step = layout.size + layout.gap;
    const column = Math.floor((event.clientX - box.left - layout.edge) / step);
    const row = Math.floor((event.clientY - box.top - layout.edge) / step);
    return column >= 0 && column < layout.columns ? row * layout.columns + column : -1;
  };
  const onKey = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: layout.columns,
      ArrowUp: -layout.columns,
    };
    if (event.key === "Enter" && cells[cursor] !== undefined) {
      onChoose(cells[cursor]!);
      return;
    }
    if (event.key === "o" && cells[cursor] !== undefined) {
      location.hash = rankAddress(job, cells[cursor]!.first);
      return;
    }
    // Goes to the next cell with a problem.
    if (event.key === "n" || event.key === "p") {
      const way = event.key === "n" ? 1 : -1;
      for (let i = 1; i <= cells.length; ++i) {
        const at = (cursor + way * i + 2 * cells.length) % cells.length;
        if (severity(cells[at]!.state) > severity("w")) {
          select(at);
          return;
        }
      }
      return;
    }
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    select(Math.min(cells.length - 1, Math.max(0, cursor + step)));
  };
  const what =
    map.communicators === 1
      ? `${map.size} ranks`
      : `${count(map.communicators)} communicators of ${map.size} ranks`;
  return (
    <div class="map">
      <h3>
        {map.name} <span class="soft">{what}</span>
      </h3>
      <div ref={watch}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={
            `${map.name}: arrow keys go from ${byHost ? "host to host" : "rank to rank"}, ` +
            "n and p go to the next and previous problem, Enter shows the calls, o opens the rank's page"
          }
          onMouseMove={(event) => select(indexAt(event))}
          onMouseLeave={() => select(-1)}
          onClick={(event) => {
            const cell = cells[indexAt(event)];
            if (cell !== undefined) onChoose(cell);
          }}
          onFocus={() => {
            if (cursor < 0)
              select(
                Math.max(
                  0,
                  cells.findIndex((cell) => severity(cell.state) > severity("w")),
                ),
              );
          }}
          onBlur={() => select(-1)}
          onKeyDown={onKey}
        />
      </div>
      <p class="hint" aria-live="polite">
        {hint}
      </p>
      <Words job={job} map={map} />
    </div>
  );
}

const kNamesOfFolded = 6;

function namesOf(maps: RankMap[]): string {
  const names = maps.slice(0, kNamesOfFolded).map((map) => map.name);
  return names.join(", ") + (maps.length > names.length ? ", ..." : "");
}

// Marks the ranks that made another call on the map of that communicator.
function withMismatch(maps: RankMap[], mismatch: Mismatch | undefined): RankMap[] {
  if (mismatch === undefined) return maps;
  const { name, size } = mismatch.communicator;
  return maps.map((map) =>
    map.name !== name || map.size !== size
      ? map
      : { ...map, states: replaceRanks(map.states, mismatch.ranks, kDiffers) },
  );
}

export function Matrix({
  job,
  view: given,
  mismatch,
  onChoose,
}: {
  job: JobAddress;
  view: JobView;
  mismatch: Mismatch | undefined;
  onChoose: (ranks: number[]) => void;
}) {
  const view = useMemo(
    () => ({ ...given, maps: withMismatch(given.maps, mismatch) }),
    [given, mismatch],
  );
  const ranks = view.maps[0]?.states.length ?? 0;
  const [byHost, setByHost] = useState(ranks > kMostRankCells);
  // Without a problem, one cell for each host is enough.
  const isSame = (map: RankMap) => severity(worst(map.states)) <= severity("o");
  const isCalm = (map: RankMap) => ranks > kWorthShrinking && view.hosts.length > 1 && isSame(map);
  const used = useMemo(() => kindsIn(view.maps), [view.maps]);
  const different = view.maps.filter((map) => !isSame(map));
  // Where all maps are alike, none is in the way of another.
  const folded = different.length > 0 ? view.maps.filter(isSame) : [];
  const show = (map: RankMap) => (
    <RankMapView
      key={`${map.name} ${map.size}`}
      job={job}
      map={map}
      view={view}
      byHost={byHost || isCalm(map)}
      onChoose={choose}
    />
  );
  const choose = (cell: Cell): void =>
    onChoose(Array.from({ length: Math.min(cell.ranks, 16) }, (_, i) => cell.first + i));
  return (
    <>
      <div class="legend">
        {used.map((kind) => (
          <span key={kind.key}>
            <span class="swatch" style={{ background: `var(${kind.color})` }} aria-hidden="true">
              {kind.key === "1" ? "1" : kind.sign}
            </span>{" "}
            {kind.words}
          </span>
        ))}
        {view.culprits.length > 0 && (
          <span>
            <span class="swatch outlined" aria-hidden="true" /> Culprit
          </span>
        )}
        {view.hosts.length > 1 && (
          <label>
            <input
              type="checkbox"
              checked={byHost}
              onChange={(event) => setByHost(event.currentTarget.checked)}
            />{" "}
            One cell per host
          </label>
        )}
      </div>
      {(folded.length > 0 ? different : view.maps).map(show)}
      {folded.length > 0 && (
        <details class="folded">
          <summary>
            {plural(folded.length, "map")} on which no rank waits or lags: {namesOf(folded)}
          </summary>
          {folded.map(show)}
        </details>
      )}
      {view.maps.length === 0 && <p class="soft">No communicator has been created yet.</p>}
    </>
  );
}
