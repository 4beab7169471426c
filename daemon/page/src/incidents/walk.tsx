// SPDX-License-Identifier: Apache-2.0
// Draws the way from a rank that waits for data to the first link that does not move: the culprit on
// top, arrows in the direction of the data. A list beside it has the same in words.
import type { JobAddress } from "../api";
import { plural } from "../format";
import { RankLink } from "../links";
import type { NetworkWalk } from "../messages";
import {
  faultInShort,
  faultInWords,
  type Hop,
  type Link,
  type Stop,
  type Way,
  waitInWords,
  wayOf,
  whenInWords,
} from "./walk_path";

const kWidth = 328;
const kNodeWidth = 92;
const kNodeHeight = 30;
const kPitch = 84; // from one rank to the next
const kMiddle = 2 + kNodeWidth / 2;
const kTextLeft = kMiddle + 18;
const kTop = 2;
const kStepsAtFirst = 8;

const topOf = (index: number) => kTop + index * kPitch;

function Node({ stop, index, fault }: { stop: Stop; index: number; fault: string }) {
  const top = topOf(index);
  const isCulprit = index === 0;
  const name = stop.leftOut > 0 ? `${plural(stop.leftOut, "rank")} …` : `rank ${stop.rank}`;
  return (
    <g>
      <rect
        x={2}
        y={top}
        width={kNodeWidth}
        height={kNodeHeight}
        rx="6"
        class={isCulprit ? "node node-stuck" : stop.leftOut > 0 ? "node node-many" : "node"}
      />
      <text x={kMiddle} y={top + 19} class="node-name">
        {name}
      </text>
      {isCulprit && (
        <text x={2 + kNodeWidth + 8} y={top + 19} class="walk-text walk-stuck">
          {fault}
        </text>
      )}
    </g>
  );
}

function Arrow({ link, index }: { link: Link; index: number }) {
  const low = topOf(index) + kNodeHeight + 3;
  const high = topOf(index + 1) - 3;
  const lines = [link.isStuck ? "✕ the first link that does not move" : "", link.wait, link.when];
  const shown = lines.filter((line) => line !== "");
  const first = (low + high) / 2 - 8 * (shown.length - 1) + 4;
  return (
    <g>
      <line
        x1={kMiddle}
        x2={kMiddle}
        y1={link.isUp ? high : low}
        y2={link.isUp ? low : high}
        class={link.isStuck ? "walk-link walk-link-stuck" : "walk-link"}
        marker-end={link.isStuck ? "url(#walk-stuck)" : "url(#walk-moves)"}
      />
      {shown.map((line, at) => (
        <text
          key={at}
          x={kTextLeft}
          y={first + 16 * at}
          class={link.isStuck && at === 0 ? "walk-text walk-stuck" : "walk-text"}
        >
          {line}
        </text>
      ))}
    </g>
  );
}

function Tip({ id, kind }: { id: string; kind: string }) {
  return (
    <marker
      id={id}
      viewBox="0 0 8 8"
      refX="7"
      refY="4"
      markerWidth="9"
      markerHeight="9"
      markerUnits="userSpaceOnUse"
      orient="auto"
    >
      <path d="M0 0 8 4 0 8z" class={kind} />
    </marker>
  );
}

function Picture({ way, fault }: { way: Way; fault: string }) {
  const height = topOf(way.stops.length - 1) + kNodeHeight + 2;
  return (
    <svg
      class="walk-picture"
      viewBox={`0 0 ${kWidth} ${height}`}
      width={kWidth}
      height={height}
      role="img"
      aria-label="the way to the first link that does not move; the list has the same data"
    >
      <defs>
        <Tip id="walk-moves" kind="walk-tip" />
        <Tip id="walk-stuck" kind="walk-tip-stuck" />
      </defs>
      {way.links.map((link, index) => (
        <Arrow key={index} link={link} index={index} />
      ))}
      {way.stops.map((stop, index) => (
        <Node key={index} stop={stop} index={index} fault={fault} />
      ))}
    </svg>
  );
}

function Step({ job, hop, isFirst }: { job: JobAddress; hop: Hop; isFirst: boolean }) {
  return (
    <li>
      Rank <RankLink job={job} rank={hop.rank} /> {waitInWords(hop.wait)}
      {hop.peer >= 0 && (
        <>
          {hop.wait.startsWith("send") ? " for rank " : " from rank "}
          <RankLink job={job} rank={hop.peer} />
        </>
      )}
      , {whenInWords(hop)}
      {isFirst && ": the first link that does not move"}
    </li>
  );
}

function Steps({ job, walk }: { job: JobAddress; walk: NetworkWalk }) {
  const below = walk.hops.slice(0, -1).reverse();
  const steps = below.map((hop, index) => (
    <Step key={index} job={job} hop={hop} isFirst={index === 0} />
  ));
  if (walk.hops_left_out > 0) {
    const middle = steps.length - walk.hops.length / 2;
    steps.splice(middle, 0, <li key="out">{plural(walk.hops_left_out, "rank")} …</li>);
  }
  const rest = steps.slice(kStepsAtFirst);
  return (
    <>
      <ol>
        <li>
          <b>
            Rank <RankLink job={job} rank={walk.rank} />: {faultInWords(walk)}
          </b>
        </li>
        {steps.slice(0, kStepsAtFirst)}
      </ol>
      {rest.length > 0 && (
        <details>
          <summary>
            {plural(rest.length + Math.max(walk.hops_left_out - 1, 0), "more rank")} on the way
          </summary>
          <ol start={kStepsAtFirst + 2}>{rest}</ol>
        </details>
      )}
    </>
  );
}

export function Walk({ job, walk }: { job: JobAddress; walk: NetworkWalk }) {
  return (
    <>
      <h3>The way to the first link that does not move</h3>
      <figure class="walk">
        <Picture way={wayOf(walk)} fault={faultInShort(walk)} />
        <div class="walk-words">
          <Steps job={job} walk={walk} />
          <p class="soft">
            Arrows point where data should flow.
            {walk.channels > 0 &&
              ` Of ${plural(walk.channels, "channel")} that ${walk.channels === 1 ? "waits" : "wait"}, ` +
                `${walk.agreeing} ${walk.agreeing === 1 ? "leads" : "lead"} to rank ${walk.rank}.`}
          </p>
        </div>
      </figure>
    </>
  );
}
