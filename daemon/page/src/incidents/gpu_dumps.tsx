// SPDX-License-Identifier: Apache-2.0
// What the GPUs of an incident's ranks did, by their core dumps.
import type { JobAddress } from "../api";
import { count, plural } from "../format";
import { RankLink } from "../links";
import type { GpuDump, GpuKernel, Incident } from "../messages";
import { Section } from "../parts";

const kPlaces = 3;

function kernelInWords(dump: GpuDump, kernel: GpuKernel): string {
  const gpu = dump.device < 0 ? "its GPU" : `GPU ${dump.device}`;
  const isActive = kernel.status === "" || kernel.status === "Active";
  return (
    `${gpu} is in kernel ${kernel.name}${isActive ? "" : ` (${kernel.status})`}, ` +
    `grid ${kernel.grid}, block ${kernel.block}`
  );
}

function placesInWords(kernel: GpuKernel): string {
  const places = kernel.places
    .slice(0, kPlaces)
    .map((place, index) =>
      index === 0
        ? `${count(place.threads)} of ${count(kernel.threads)} threads at ${place.at}`
        : `${count(place.threads)} at ${place.at}`,
    );
  const more = Math.max(kernel.places.length - kPlaces, 0) + kernel.places_left_out;
  return [...places, ...(more > 0 ? [`and ${plural(more, "more place")}`] : [])].join(", ");
}

function Dump({ job, dump }: { job: JobAddress; dump: GpuDump }) {
  const lines = dump.kernels.map((kernel) =>
    [kernelInWords(dump, kernel), placesInWords(kernel)].filter((text) => text !== "").join(": "),
  );
  if (dump.kernels_left_out > 0) lines.push(plural(dump.kernels_left_out, "more kernel"));
  if (dump.note !== "") lines.push(dump.note);
  return (
    <li>
      {dump.rank < 0 ? "a process" : "rank "}
      <RankLink job={job} rank={dump.rank} /> ({dump.host}, pid {dump.pid}),{" "}
      {dump.is_culprit ? "the culprit" : "waiting"}: {lines.join("; ")}
    </li>
  );
}

export function GpuDumps({ job, incident }: { job: JobAddress; incident: Incident }) {
  if (incident.gpu_dumps.length === 0) return null;
  return (
    <Section title="What the GPUs did" id="gpus">
      <ul>
        {incident.gpu_dumps.map((dump, index) => (
          <Dump key={index} job={job} dump={dump} />
        ))}
      </ul>
    </Section>
  );
}
