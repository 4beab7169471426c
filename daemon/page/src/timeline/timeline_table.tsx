// SPDX-License-Identifier: Apache-2.0
// The newest calls of the timeline as a table.
import { call as callInWords, count, seconds } from "../format";
import { differs, type Mismatch } from "../jobs/mismatch";
import type { CallSpan } from "../messages";
import { type Column, Table } from "../parts";
import type { Lane } from "./timeline_lanes";

function onGpu(span: CallSpan): string {
  return span.gpu === "" ? "unknown" : span.gpu;
}

const columns: Column[] = [
  ["Rank"],
  ["Communicator"],
  ["Position", "number"],
  ["Call"],
  ["Code"],
  ["Entered", "number"],
  ["On the host", "number"],
  ["On the GPU"],
];

export function CallsTable({
  lanes,
  now,
  mismatch,
}: {
  lanes: Lane[];
  now: number;
  mismatch: Mismatch | undefined;
}) {
  return (
    <Table label="calls" columns={columns}>
      {lanes.flatMap((lane) =>
        [...lane.comm.calls]
          .reverse()
          .slice(0, 10)
          .map((span) => (
            <tr
              key={
                `${lane.rank} ${lane.comm.communicator.id} ` +
                `${span.call.position} ${span.entered_seconds}`
              }
              class={
                differs(mismatch, lane.rank, lane.comm, span.call)
                  ? "differs"
                  : span.waits
                    ? "waits"
                    : ""
              }
            >
              <td>{lane.rank}</td>
              <td>{lane.name}</td>
              <td class="number">#{count(span.call.position)}</td>
              <td>
                {callInWords(span.call)}
                {span.waits && <b> waits</b>}
                {differs(mismatch, lane.rank, lane.comm, span.call) && (
                  <b> ≠ another call than the others</b>
                )}
              </td>
              <td>{span.call.code}</td>
              <td class="number">{seconds(now - span.entered_seconds)} ago</td>
              <td class="number">
                {span.returned_seconds > 0
                  ? seconds(span.returned_seconds - span.entered_seconds)
                  : "not returned"}
              </td>
              <td>{onGpu(span)}</td>
            </tr>
          )),
      )}
    </Table>
  );
}
