// SPDX-License-Identifier: Apache-2.0
// A map of ranks in words.
import { useMemo } from "preact/hooks";
import type { JobAddress } from "../api";
import { RankSetLinks } from "../links";
import type { RankMap } from "../messages";
import { formatRanks } from "../ranks";
import { describeState, severity } from "./states";

// Lists the ranks with problems.
export function Words({ job, map }: { job: JobAddress; map: RankMap }) {
  const byKind = useMemo(() => {
    const found = new Map<string, number[]>();
    for (let rank = 0; rank < map.states.length; ++rank) {
      const state = map.states[rank]!;
      if (severity(state) <= severity(".")) continue;
      const words = describeState(state);
      const ranks = found.get(words);
      if (ranks === undefined) found.set(words, [rank]);
      else ranks.push(rank);
    }
    return [...found.entries()].sort((a, b) => a[1].length - b[1].length);
  }, [map.states]);
  if (byKind.length === 0) return <p class="soft words">No rank waits here</p>;
  return (
    <ul class="words">
      {byKind.slice(0, 12).map(([words, ranks]) => (
        <li key={words}>
          <b>{words}</b>:{" "}
          <RankSetLinks
            job={job}
            set={{ total: ranks.length, ranks: formatRanks(ranks, 12) }}
            most={12}
          />
        </li>
      ))}
    </ul>
  );
}
