// SPDX-License-Identifier: Apache-2.0
// The ranks between the culprit of a collective that stands still and a rank that waits for data, as
// the picture of the walk shows them. Pure.
import { seconds } from "../format";
import type { NetworkWalk } from "../messages";

const kMostRanks = 9;
const kFirstRanks = 4; // of a longer way; the last ones fill the rest

export interface Stop {
  rank: number;
  leftOut: number; // if more than 0, so many ranks stand here instead of one
}

export interface Link {
  isUp: boolean; // data flows from the rank below to the rank above
  isStuck: boolean; // the first link on the way that does not move
  wait: string; // what the rank below waits for; empty if unknown
  when: string; // "channel 0, for 12 s"
}

// The culprit first. `links[i]` lies between `stops[i]` and `stops[i + 1]`.
export interface Way {
  stops: Stop[];
  links: Link[];
}

const waits: Record<string, string> = {
  send_gpu: "waits for its own GPU to make data",
  send_peer: "waits for the receiver to take data",
  send: "waits for the network to carry data",
  receive: "waits for data",
  receive_flush: "waits for data to reach its GPU",
  receive_gpu: "waits for its own GPU to take data",
};

export function waitInWords(wait: string): string {
  return wait === "" ? "waits for nothing" : (waits[wait] ?? wait);
}

declare const NETWORK_FAULTS: Record<string, { line: string; short: string }>; // build.mjs

const withPeer = (words: string, walk: NetworkWalk) =>
  words.replace("$p", walk.peer < 0 ? "its peer" : `rank ${walk.peer}`);

// What is wrong at the culprit, to follow "rank 3: ". A fault unknown to this page is its word.
export function faultInWords(walk: NetworkWalk): string {
  return withPeer(NETWORK_FAULTS[walk.fault]?.line ?? walk.fault, walk);
}

// Says the same in few enough words to stand beside the culprit on a phone.
export function faultInShort(walk: NetworkWalk): string {
  return withPeer(NETWORK_FAULTS[walk.fault]?.short ?? walk.fault, walk);
}

export type Hop = NetworkWalk["hops"][number];

export function whenInWords(hop: Hop): string {
  const long = hop.waited_seconds > 0 ? `, for ${seconds(hop.waited_seconds)}` : "";
  return `channel ${hop.channel}${long}`;
}

function linkOf(hop: Hop, isStuck: boolean): Link {
  const sends = hop.wait.startsWith("send");
  return { isUp: sends, isStuck, wait: waitInWords(hop.wait), when: whenInWords(hop) };
}

// Where no rank on the way waits for the culprit, the other end of its link stands below it.
function alone(walk: NetworkWalk, culprit: Hop | undefined): Way {
  const stops: Stop[] = [{ rank: walk.rank, leftOut: 0 }];
  if (walk.peer < 0) return { stops, links: [] };
  stops.push({ rank: walk.peer, leftOut: 0 });
  const when = culprit === undefined ? "" : whenInWords(culprit);
  return { stops, links: [{ isUp: walk.fault === "peer_gpu", isStuck: true, wait: "", when }] };
}

// `leftOut`: ranks that the message leaves out. Such a way is always long enough to be shortened here.
function shorten(way: Way, leftOut: number): Way {
  const extra = way.stops.length - kMostRanks;
  if (extra <= 0) return way;
  const { stops, links } = way;
  const from = kFirstRanks;
  const to = from + extra + 1; // the ranks from..to-1 stand at one place
  return {
    stops: [
      ...stops.slice(0, from),
      { rank: -1, leftOut: to - from + leftOut },
      ...stops.slice(to),
    ],
    links: [...links.slice(0, from), ...links.slice(to - 1)],
  };
}

export function wayOf(walk: NetworkWalk): Way {
  const up = [...walk.hops].reverse();
  if (up.length < 2) return alone(walk, up[0]);
  const way = {
    stops: up.map((hop) => ({ rank: hop.rank, leftOut: 0 })),
    links: up.slice(1).map((hop, index) => linkOf(hop, index === 0)),
  };
  return shorten(way, walk.hops_left_out);
}
