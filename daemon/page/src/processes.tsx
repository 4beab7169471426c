// SPDX-License-Identifier: Apache-2.0
// The processes of a job, one page at a time.
import { useState } from "preact/hooks";
import { type JobAddress, processesPath } from "./api";
import { bytes, seconds } from "./format";
import { useLive } from "./live";
import type { ProcessesResponse, ProcessStatus } from "./messages";
import { type Column, Pager, Stale, Table, Waiting } from "./parts";

const kLimit = 50;

function ending(process: ProcessStatus): string {
  if (process.exit_signal > 0) return `killed by signal ${process.exit_signal}`;
  if (process.liveness === "exited" || process.liveness === "died") {
    return process.exit_code >= 0
      ? `${process.liveness}, exit code ${process.exit_code}`
      : process.liveness;
  }
  return process.liveness === "ended" ? "ended (exit status unknown)" : process.liveness;
}

const stateWords: Record<string, string> = {
  R: "running",
  S: "sleeping",
  D: "in the kernel",
  T: "stopped",
  t: "traced",
  Z: "zombie",
};

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

export function Processes({ job }: { job: JobAddress }) {
  const [offset, setOffset] = useState(0);
  const [host, setHost] = useState("");
  const live = useLive<ProcessesResponse>(
    processesPath(job, { host, offset: String(offset), limit: String(kLimit) }),
  );
  if (live.value === undefined && host === "") return <Waiting live={live} what="processes" />;
  const list = live.value?.processes ?? [];
  const hasPlaces = list.some((process) => place(process) !== "");
  const columns: Column[] = [
    ["Rank", "number"],
    ["Host"],
    ...(hasPlaces ? [["Node, pod, container"] as Column] : []),
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
      <Table label="processes" columns={columns}>
        {list.map((process) => (
          <tr key={`${process.host} ${process.pid}`}>
            <td class="number">{process.rank < 0 ? "" : process.rank}</td>
            <td>{process.host}</td>
            {hasPlaces && <td>{place(process)}</td>}
            <td class="number">{process.pid}</td>
            <td class="number" title={process.gpu_uuid}>
              {process.device < 0 ? "" : process.device}
            </td>
            <td>
              {ending(process)}
              {process.liveness === "alive" &&
                process.state !== "" &&
                `, ${stateWords[process.state] ?? process.state}`}
              {process.cpu_moving && ", uses CPU"}
            </td>
            <td>
              {process.doing === ""
                ? process.wait_channel
                : `${process.doing} for ${seconds(process.doing_seconds)}`}
            </td>
            <td class="number">{seconds(process.cpu_seconds)}</td>
            <td class="number">
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
