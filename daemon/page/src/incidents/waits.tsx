// SPDX-License-Identifier: Apache-2.0
// Draws which ranks wait for which: a cycle as a ring, a chain as a row.
import type { JobAddress } from "../api";
import { call, plural } from "../format";
import { CommunicatorWords, RankLinks } from "../links";
import type { WaitEdge } from "../messages";
import { shortenRanks } from "../ranks";
import { edgeEnds, type RankSet, rankWords } from "../totals";

const kWidth = 640;

function Ranks({ job, set }: { job: JobAddress; set: RankSet }) {
  if (set.total === 0) return <>?</>;
  return (
    <>
      {set.total === 1 ? "rank " : "ranks "}
      <RankLinks job={job} ranks={shortenRanks(set.ranks, 4)} />
    </>
  );
}

function name(ranks: RankSet): string {
  return rankWords(ranks, 4) || "?";
}

// `total`: number of edges; `chain` has the first ones.
export function Waits({
  job,
  chain,
  total,
}: {
  job: JobAddress;
  chain: WaitEdge[];
  total: number;
}) {
  if (chain.length === 0) return null;
  const nodes: RankSet[] = [];
  const at = (ranks: RankSet): number => {
    const known = nodes.findIndex((node) => node.ranks === ranks.ranks);
    return known >= 0 ? known : nodes.push(ranks) - 1;
  };
  const edges = chain.map((edge) => {
    const ends = edgeEnds(edge);
    return { from: at(ends.from), to: at(ends.to), ends, edge };
  });
  const ring = edges.some(({ from, to }) => from > to);
  const height = ring ? 300 : 90;
  const place = (index: number): [number, number] => {
    if (!ring) return [70 + (index * (kWidth - 140)) / Math.max(nodes.length - 1, 1), 45];
    const angle = (2 * Math.PI * index) / nodes.length - Math.PI / 2;
    return [kWidth / 2 + 210 * Math.cos(angle), height / 2 + 110 * Math.sin(angle)];
  };
  return (
    <figure>
      {nodes.length <= 16 && (
        <svg
          class="waits-graph"
          viewBox={`0 0 ${kWidth} ${height}`}
          role="img"
          aria-label="which rank waits for which; the list below has the same data"
        >
          <defs>
            <marker
              id="arrow"
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              orient="auto"
            >
              <path d="M0 0 8 4 0 8z" class="arrow" />
            </marker>
          </defs>
          {edges.map(({ from, to }, index) => {
            const [x1, y1] = place(from);
            const [x2, y2] = place(to);
            const length = Math.max(Math.hypot(x2 - x1, y2 - y1), 1);
            const cut = Math.min(ring ? 46 : 62, length / 2 - 4);
            const dx = ((x2 - x1) / length) * cut;
            const dy = ((y2 - y1) / length) * cut;
            // Separates the lines of two nodes that wait for each other.
            const nx = -((y2 - y1) / length) * (ring ? 8 : 0);
            const ny = ((x2 - x1) / length) * (ring ? 8 : 0);
            return (
              <g key={index}>
                <line
                  x1={x1 + dx + nx}
                  y1={y1 + dy + ny}
                  x2={x2 - dx + nx}
                  y2={y2 - dy + ny}
                  class="edge"
                  marker-end="url(#arrow)"
                />
                <text x={(x1 + x2) / 2 + nx * 2} y={(y1 + y2) / 2 + ny * 2 - 4} class="edge-name">
                  {index + 1}
                </text>
              </g>
            );
          })}
          {nodes.map((node, index) => {
            const [x, y] = place(index);
            const text = name(node);
            return (
              <g key={index}>
                <rect x={x - 58} y={y - 15} width="116" height="30" rx="6" class="node" />
                <text x={x} y={y + 4} class="node-name">
                  {text.length > 17 ? `${text.slice(0, 16)}…` : text}
                </text>
              </g>
            );
          })}
        </svg>
      )}
      <ol class="waits-list">
        {edges.map(({ ends, edge }, index) => (
          <li key={index}>
            <Ranks job={job} set={ends.from} /> {ends.from.total === 1 ? "waits" : "wait"} for{" "}
            <Ranks job={job} set={ends.to} /> in {call(edge.call) || "a call"}
            {edge.communicator !== undefined && (
              <>
                {" on "}
                <CommunicatorWords job={job} of={edge.communicator} />
              </>
            )}
          </li>
        ))}
      </ol>
      {total > chain.length && <p class="soft">and {plural(total - chain.length, "more wait")}</p>}
    </figure>
  );
}
