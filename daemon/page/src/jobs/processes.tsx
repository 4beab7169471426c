// SPDX-License-Identifier: Apache-2.0
// The processes of a job, one page at a time.
import { useState } from "preact/hooks";
import { type JobAddress, processesPath } from "../api";
import { bytes, seconds } from "../format";
import { HostLink, RankLink } from "../links";
import { useLive } from "../live";
import type { ProcessesResponse, ProcessStatus } from "../messages";
import { type Column, Pager, Stale, Table, Waiting } from "../parts";
import { life } from "./process_words";

const kLimit = 50;

// Where the process runs, as far as it is known, beyond host and pid.
function place(process: ProcessStatus): string {
  const parts = [
    process.node !== process.host ? process.node : "",
    process.pod,
    process.container !== "" ? `container ${process.container}` : "",
    process.inner_pid > 0 ? `pid ${process.inner_pid} inside` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

// `host`: only those on this host; without it, the reader may choose one.
export function Processes({ job, host: given }: { job: JobAddress; host?: string }) {
  const [offset, setOffset] = useState(0);
  const [host, setHost] = useState(given ?? "");
  const live = useLive<ProcessesResponse>(
    processesPath(job, { host, offset: String(offset), limit: String(kLimit) }),
  );
  if (live.value === undefined && host === (given ?? ""))
    return <Waiting live={live} what="processes" />;
  const list = live.value?.processes ?? [];
  const hasPlaces = list.some((process) => place(process) !== "");
  const hasRoles = list.some((process) => process.role !== "");
  const columns: Column[] = [
    ["Rank", "number"],
    ...(given === undefined ? [["Host"] as Column] : []),
    ...(hasPlaces ? [["Node, pod, container"] as Column] : []),
    ...(hasRoles ? [["Role"] as Column] : []),
    ["PID", "number"],
    ["GPU", "number"],
    ["State"],
    ["Current call"],
    ["CPU time", "number"],
    ["Memory", "number"],
    ["Command"],
  ];
  return (
    <>
      <Stale live={live} />
      {given === undefined && (
        <label class="filter">
          Host{" "}
          <input
            value={host}
            size={16}
            onChange={(event) => {
              setOffset(0);
              setHost(event.currentTarget.value.trim());
            }}
            placeholder="all"
          />
        </label>
      )}
      <Table label="processes" kind="stacked" columns={columns}>
        {list.map((process) => (
          <tr key={`${process.host} ${process.pid}`}>
            <td class="number" data-label="rank">
              <RankLink job={job} rank={process.rank} />
            </td>
            {given === undefined && (
              <td>
                <HostLink host={process.host} />
              </td>
            )}
            {hasPlaces && <td>{place(process)}</td>}
            {hasRoles && <td>{process.role}</td>}
            <td class="number" data-label="pid">
              {process.pid}
            </td>
            <td class="number" data-label="GPU" title={process.gpu_uuid}>
              {process.device < 0 ? "" : process.device}
            </td>
            <td>{life(process)}</td>
            <td>
              {process.doing === ""
                ? process.wait_channel
                : `${process.doing} for ${seconds(process.doing_seconds)}`}
            </td>
            <td class="number" data-label="CPU time">
              {seconds(process.cpu_seconds)}
            </td>
            <td class="number" data-label="memory">
              {process.memory_bytes > 0 ? bytes(process.memory_bytes) : ""}
            </td>
            <td class="command">{process.command}</td>
          </tr>
        ))}
      </Table>
      <Pager offset={offset} limit={kLimit} total={live.value?.total ?? 0} onChange={setOffset} />
    </>
  );
}
