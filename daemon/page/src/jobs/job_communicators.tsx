// SPDX-License-Identifier: Apache-2.0
// The communicators of a job, those that wait or lag most first.
import { useState } from "preact/hooks";
import type { JobAddress } from "../api";
import { call, count, lastCalls, seconds } from "../format";
import { CommunicatorLink, MismatchWords, RankLinks } from "../links";
import type { CommunicatorStatus } from "../messages";
import { type Column, Table } from "../parts";
import { formatRanks } from "../ranks";
import type { Mismatch } from "./mismatch";

const kCommunicatorsAtFirst = 12;
const columns: Column[] = [
  ["Communicator"],
  ["Ranks", "number"],
  ["Last call", "number"],
  ["Ranks behind"],
  ["Newest call"],
  ["Waiting", "number"],
  ["Longest wait", "number"],
];

function rowKind(comm: CommunicatorStatus, mismatch: Mismatch | undefined): string {
  if (mismatch?.communicator.id === comm.id) return "differs";
  return comm.waiting > 0 && comm.position_max > comm.position_min ? "waits" : "";
}

export function Communicators({
  job,
  list,
  total,
  mismatch,
}: {
  job: JobAddress;
  list: CommunicatorStatus[];
  total: number;
  mismatch: Mismatch | undefined;
}) {
  const [all, setAll] = useState(false);
  const shown = all ? list : list.slice(0, kCommunicatorsAtFirst);
  return (
    <>
      <Table label="communicators" kind="stacked" columns={columns}>
        {shown.map((comm) => (
          <tr key={comm.id} class={rowKind(comm, mismatch)}>
            <th scope="row" title={comm.id}>
              <CommunicatorLink job={job} id={comm.id}>
                {comm.name || comm.id}
              </CommunicatorLink>
            </th>
            <td class="number" data-label="ranks">
              {comm.members < comm.size ? `${comm.members} of ${comm.size}` : comm.size}
            </td>
            <td class="number" data-label="last call">
              {lastCalls(comm)}
            </td>
            <td data-label={comm.laggards_total > 0 ? "behind" : undefined}>
              <RankLinks job={job} ranks={formatRanks(comm.laggards)} />
              {comm.laggards_total > comm.laggards.length && `, ${comm.laggards_total} in all`}
            </td>
            <td class="wide">
              {call(comm.call) || comm.operation}
              {mismatch?.communicator.id === comm.id && (
                <MismatchWords job={job} mismatch={mismatch} />
              )}
            </td>
            <td class="number" data-label="waiting">
              {comm.waiting}
            </td>
            <td class="number" data-label="longest wait">
              {comm.waiting > 0 ? seconds(comm.waited_seconds) : ""}
            </td>
          </tr>
        ))}
      </Table>
      {shown.length < list.length && (
        <p>
          <button type="button" onClick={() => setAll(true)}>
            Show {list.length}
          </button>
        </p>
      )}
      {total > shown.length && (
        <p class="soft">
          The {shown.length} that wait or lag most, of {count(total)}.
        </p>
      )}
    </>
  );
}
