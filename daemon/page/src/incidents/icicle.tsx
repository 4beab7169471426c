// SPDX-License-Identifier: Apache-2.0
// The merged stacks as an icicle: the outermost frame at the top, a width for the number of
// threads, and warm colours for frames of few ranks. Omits frames that are too narrow to see.
import { useMemo, useState } from "preact/hooks";
import type { JobAddress } from "../api";
import { plural } from "../format";
import { RankLinks } from "../links";
import type { StackTree_Node as StackNode, StackTree } from "../messages";
import { useWidth } from "../parts";
import { shortenRanks } from "../ranks";

const kRow = 20;
const kNarrowest = 2;
const kLeastWidth = 120; // before the page has its layout
const kMostRows = 60;

interface Box {
  index: number;
  x: number;
  width: number;
  depth: number;
}

function listChildren(nodes: StackNode[]): number[][] {
  const children: number[][] = nodes.map(() => []);
  nodes.forEach((node, index) => {
    if (index > 0) children[node.parent]?.push(index);
  });
  // Frames of few ranks come first.
  for (const list of children)
    list.sort(
      (a, b) =>
        nodes[a]!.rank_count - nodes[b]!.rank_count || nodes[b]!.threads - nodes[a]!.threads,
    );
  return children;
}

// Frames on the way to a frame that not all ranks have.
function differing(nodes: StackNode[]): Set<number> {
  const all = nodes[0]?.rank_count ?? 0;
  const kept = new Set<number>();
  nodes.forEach((node, index) => {
    if (node.rank_count >= all) return;
    for (let at = index; !kept.has(at); at = nodes[at]!.parent) {
      kept.add(at);
      if (at === 0) break;
    }
  });
  return kept;
}

function layOutBoxes(
  nodes: StackNode[],
  children: number[][],
  root: number,
  width: number,
  shown: Set<number> | undefined,
): Box[] {
  const boxes: Box[] = [];
  const visit = [{ index: root, x: 0, width, depth: 0 }];
  while (visit.length > 0) {
    const box = visit.pop()!;
    boxes.push(box);
    if (box.depth >= kMostRows) continue;
    const below = children[box.index]!.filter((child) => shown === undefined || shown.has(child));
    // Hidden frames leave their room to the others. Threads that end here keep theirs.
    const threads =
      shown === undefined
        ? nodes[box.index]!.threads
        : below.reduce((sum, child) => sum + nodes[child]!.threads, 0);
    let x = box.x;
    for (const child of below) {
      const wide = (box.width * nodes[child]!.threads) / Math.max(threads, 1);
      if (wide >= kNarrowest) visit.push({ index: child, x, width: wide, depth: box.depth + 1 });
      x += wide;
    }
  }
  return boxes;
}

function heat(node: StackNode, all: number): string {
  if (node.rank_count >= all) return "var(--stack-all)";
  const share = node.rank_count / Math.max(all, 1);
  return share <= 0.05 || node.rank_count === 1
    ? "var(--stack-few)"
    : share <= 0.5
      ? "var(--stack-some)"
      : "var(--stack-most)";
}

// Returns the text before and after the list of ranks.
function partsOf(node: StackNode): [string, string] {
  const frame = node.frame === "" ? "all threads" : node.frame;
  const ending = node.ending > 0 ? `, ${node.ending} in this frame` : "";
  return [
    `${frame}: ${node.rank_count === 1 ? "rank" : "ranks"} `,
    `, ${plural(node.threads, "thread")}${ending}`,
  ];
}

function words(node: StackNode): string {
  return partsOf(node).join(node.ranks);
}

function Hint({ job, node }: { job: JobAddress; node: StackNode | undefined }) {
  if (node === undefined) return null;
  const [before, after] = partsOf(node);
  return (
    <>
      {before}
      <RankLinks job={job} ranks={shortenRanks(node.ranks, 12)} />
      {after}
    </>
  );
}

export function Icicle({ job, tree }: { job: JobAddress; tree: StackTree }) {
  const { nodes } = tree;
  const [watch, width] = useWidth();
  const [root, setRoot] = useState(0);
  const [hint, setHint] = useState<StackNode>();
  const [search, setSearch] = useState("");
  const all = nodes[0]?.rank_count ?? 0;
  const different = useMemo(() => differing(nodes), [nodes]);
  const [onlyDifferent, setOnlyDifferent] = useState(different.size > 0 && all > 1);
  const children = useMemo(() => listChildren(nodes), [nodes]);
  const at = root < nodes.length ? root : 0;
  const boxes = useMemo(
    () =>
      layOutBoxes(
        nodes,
        children,
        at,
        Math.max(width, kLeastWidth),
        onlyDifferent && different.size > 0 ? different : undefined,
      ),
    [nodes, children, at, width, onlyDifferent, different],
  );
  const wanted = search.trim().toLowerCase();
  const found = useMemo(
    () =>
      new Set(
        wanted === ""
          ? []
          : nodes.flatMap((node, index) =>
              node.frame.toLowerCase().includes(wanted) ? [index] : [],
            ),
      ),
    [nodes, wanted],
  );
  const rows = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  return (
    <div class="icicle">
      <div class="legend">
        <label>
          Search{" "}
          <input
            type="search"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
            size={16}
          />
        </label>
        {wanted !== "" && <span role="status">{found.size} frames</span>}
        {different.size > 0 && all > 1 && (
          <label>
            <input
              type="checkbox"
              checked={onlyDifferent}
              onChange={(event) => {
                setOnlyDifferent(event.currentTarget.checked);
                setRoot(0);
              }}
            />{" "}
            Only differences
          </label>
        )}
        {at !== 0 && (
          <button type="button" onClick={() => setRoot(0)}>
            Show all
          </button>
        )}
        <span>
          <span class="swatch" style={{ background: "var(--stack-few)" }} aria-hidden="true" /> Few
          ranks
        </span>
        <span>
          <span class="swatch" style={{ background: "var(--stack-all)" }} aria-hidden="true" /> All{" "}
          {all}
        </span>
      </div>
      <div ref={watch}>
        <svg
          width={Math.max(width, kLeastWidth)}
          height={rows * kRow}
          role="group"
          aria-label="Merged stacks; Tab moves from frame to frame, Enter zooms into one"
        >
          {boxes.map((box) => {
            const node = nodes[box.index]!;
            const text = box.index === 0 ? `all ${node.rank_count} ranks` : node.frame;
            const fits = Math.floor((box.width - 6) / 6.6);
            return (
              <g
                key={box.index}
                class={
                  wanted === "" ? "frame" : found.has(box.index) ? "frame found" : "frame faded"
                }
                tabIndex={box.width >= 30 ? 0 : undefined}
                role="button"
                aria-label={words(node)}
                onClick={() => setRoot(box.index === at ? node.parent : box.index)}
                onKeyDown={(event) => {
                  if (event.key === "Enter") setRoot(box.index === at ? node.parent : box.index);
                }}
                onMouseEnter={() => setHint(node)}
                onFocus={() => setHint(node)}
              >
                <rect
                  x={box.x}
                  y={box.depth * kRow}
                  width={Math.max(box.width - 1, 1)}
                  height={kRow - 1}
                  fill={heat(node, all)}
                />
                {fits >= 3 && (
                  <text x={box.x + 4} y={box.depth * kRow + 14}>
                    {text.length > fits ? `${text.slice(0, fits - 1)}…` : text}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
      <p class="hint" aria-live="polite">
        <Hint job={job} node={hint} />
      </p>
      {tree.cut && <p class="soft">The tree is cut: it has too many frames.</p>}
    </div>
  );
}
