// SPDX-License-Identifier: Apache-2.0
// The processes of a job, a page at a time.
import { useState } from "preact/hooks";
import { processesPath } from "./api";
import { bytes, seconds } from "./format";
import { useLive } from "./live";
import type { ProcessesResponse, ProcessStatus } from "./messages";
import { Pager, Stale, Waiting } from "./parts";

const kLimit = 50;

function ending(process: ProcessStatus): string {
  if (process.exit_signal > 0) return `killed by signal ${process.exit_signal}`;
  if (process.liveness === "exited" || process.liveness === "died") {
    return process.exit_code >= 0 ? `${process.liveness}, exit code ${process.exit_code}` : process.liveness;
  }
  return process.liveness === "ended" ? "ended (exit status unknown)" : process.liveness;
}

const stateWords: Record<string, string> = {
  R: "running", S: "sleeping", D: "in the kernel", T: "stopped", t: "traced", Z: "zombie",
};

export function Processes({ job }: { job: string }) {
  const [offset, setOffset] = useState(0);
  const [host, setHost] = useState("");
  const live = useLive<ProcessesResponse>(processesPath(job, { host, offset: String(offset), limit: String(kLimit) }));
  if (live.value === undefined && host === "") return <Waiting live={live} what="processes" />;
  const list = live.value?.processes ?? [];
  return (
    <>
      <Stale live={live} />
      <label class="filter">host <input value={host} size={16} onChange={(event) => { setOffset(0); setHost(event.currentTarget.value.trim()); }} placeholder="all" /></label>
      <div class="scroll" tabIndex={0} role="region" aria-label="processes"><table>
        <thead><tr><th class="number">rank</th><th>host</th><th class="number">pid</th><th class="number">GPU</th><th>state</th><th>current call</th><th class="number">CPU time</th><th class="number">memory</th><th>command</th></tr></thead>
        <tbody>{list.map((process) => (
          <tr key={`${process.host} ${process.pid}`}>
            <td class="number">{process.rank < 0 ? "" : process.rank}</td><td>{process.host}</td>
            <td class="number">{process.pid}</td><td class="number">{process.device < 0 ? "" : process.device}</td>
            <td>{ending(process)}{process.liveness === "alive" && process.state !== "" && `, ${stateWords[process.state] ?? process.state}`}{process.cpu_moving && ", uses CPU"}</td>
            <td>{process.doing === "" ? process.wait_channel : `${process.doing} for ${seconds(process.doing_seconds)}`}</td>
            <td class="number">{seconds(process.cpu_seconds)}</td>
            <td class="number">{process.memory_bytes > 0 ? bytes(process.memory_bytes) : ""}</td>
            <td class="command">{process.command}</td>
          </tr>))}</tbody>
      </table></div>
      <Pager offset={offset} limit={kLimit} total={live.value?.total ?? 0} onChange={setOffset} />
    </>
  );
}
