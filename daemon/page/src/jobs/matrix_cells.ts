// SPDX-License-Identifier: Apache-2.0
// The cells of a map of ranks: what each shows, where it lies, and how it is drawn.
import { colors, prepare } from "../canvas";
import type { HostRun, RankMap } from "../messages";
import { findKind, worst } from "./states";

export interface Cell {
  state: string;
  first: number;
  ranks: number;
  host: string;
}
export interface Layout {
  size: number;
  gap: number;
  edge: number; // around all cells
  columns: number;
  rows: number;
}

const kLargest = 26;
const kSmallest = 3;
const kSmallestWithSign = 12;
const kMostRings = 500;
const kRing = 9; // radius of the ring around a small cell with a culprit
const kEdge = kRing + 2; // room around small cells, so that the rings at the edge are whole

export function makeCells(map: RankMap, hosts: HostRun[], byHost: boolean): Cell[] {
  const cells: Cell[] = [];
  for (const run of hosts) {
    const states = map.states.slice(run.first_rank, run.first_rank + run.ranks);
    if (byHost) {
      cells.push({ state: worst(states), first: run.first_rank, ranks: run.ranks, host: run.host });
      continue;
    }
    for (let i = 0; i < run.ranks; ++i) {
      cells.push({ state: states[i] ?? "-", first: run.first_rank + i, ranks: 1, host: run.host });
    }
  }
  return cells;
}

// Makes the cells as large as the width and about half a screen's height allow.
export function fitLayout(cells: number, width: number, group: number): Layout {
  const height = cells <= 128 ? 3 * kLargest : 360;
  for (let size = kLargest; size >= kSmallest; --size) {
    const gap = size >= 6 ? 1 : 0;
    const edge = size < kSmallestWithSign ? kEdge : 0;
    let columns = Math.max(1, Math.floor((width - 2 * edge) / (size + gap)));
    if (columns > group) columns -= columns % group; // keeps the ranks of a host on one row
    columns = Math.min(columns, cells);
    const rows = Math.ceil(cells / Math.max(columns, 1));
    if (rows * (size + gap) <= height || size === kSmallest)
      return { size, gap, edge, columns, rows };
  }
  return { size: kSmallest, gap: 0, edge: kEdge, columns: 1, rows: cells };
}

export function draw(
  canvas: HTMLCanvasElement,
  cells: Cell[],
  layout: Layout,
  culprits: Set<number>,
  cursor: number,
): void {
  const step = layout.size + layout.gap;
  const { edge } = layout;
  const context = prepare(canvas, layout.columns * step + 2 * edge, layout.rows * step + 2 * edge);
  const color = colors();
  const signs = layout.size >= kSmallestWithSign;
  context.font = `${Math.round(layout.size * 0.62)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const marked: [number, number][] = [];
  cells.forEach((cell, index) => {
    const x = edge + (index % layout.columns) * step;
    const y = edge + Math.floor(index / layout.columns) * step;
    const kind = findKind(cell.state);
    context.fillStyle = color(kind.color);
    context.fillRect(x, y, layout.size, layout.size);
    const sign = kind.key === "1" ? cell.state : kind.sign;
    if (signs && sign !== "") {
      context.fillStyle = color("--cell-sign");
      context.fillText(sign, x + layout.size / 2, y + layout.size / 2 + 1);
    }
    if (cell.ranks === 1 ? culprits.has(cell.first) : hasCulprit(cell, culprits))
      marked.push([x, y]);
    if (index === cursor) {
      context.strokeStyle = color("--focus");
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, layout.size - 2, layout.size - 2);
    }
  });
  // Draws culprits last. Rings around small cells make one in thousands visible.
  for (const [x, y] of marked.slice(0, kMostRings)) {
    context.strokeStyle = color("--text");
    context.lineWidth = 2;
    if (layout.size >= kSmallestWithSign) {
      context.strokeRect(x + 1, y + 1, layout.size - 2, layout.size - 2);
      continue;
    }
    context.beginPath();
    context.arc(x + layout.size / 2, y + layout.size / 2, kRing, 0, 2 * Math.PI);
    context.stroke();
  }
}

export function hasCulprit(cell: Cell, culprits: Set<number>): boolean {
  for (let rank = cell.first; rank < cell.first + cell.ranks; ++rank)
    if (culprits.has(rank)) return true;
  return false;
}
