// SPDX-License-Identifier: Apache-2.0
// All incidents of the history: filters, groups of alike hangs, ranks and hosts with repeated
// incidents, and a comparison of two.
import { useState } from "preact/hooks";
import { formatAddress, setParameters, useAddress } from "../address";
import { incidentsPath } from "../api";
import { plural, seconds } from "../format";
import { CulpritHosts, HostLink, RankLink, RankLinks, Sentence } from "../links";
import { useLive } from "../live";
import type { Incident, ListIncidentsResponse } from "../messages";
import {
  type Column,
  IncidentLink,
  JobLink,
  Pager,
  Stale,
  State,
  Table,
  TakenBy,
  Time,
  Waiting,
} from "../parts";
import { shortenRanks } from "../ranks";
import { type Zone, zoneName } from "../timescale";
import { culpritRanks } from "../totals";
import { useZone } from "../zone";
import { Groups } from "./incident_groups";

const kLimit = 50;
export const kCauses = [
  "missing_rank",
  "rank_exited",
  "rank_died",
  "host_lost",
  "operation_mismatch",
  "argument_mismatch",
  "init_incomplete",
  "unmatched_p2p",
  "deadlock",
  "blocked_before_start",
  "stalled_in_flight",
  "standstill",
  "teardown_hang",
  "nccl_error",
  "concurrent_use",
];

const columns: Column[] = [
  [<span class="hidden">Compare</span>],
  ["Opened"],
  ["State"],
  ["Incident"],
  ["Job"],
  ["What happened"],
  ["Cause"],
  ["Ranks"],
  ["Hosts"],
  ["Lasted", "number"],
];

function duration(incident: Incident): string {
  if (incident.opened_at === undefined || incident.closed_at === undefined) return "";
  return seconds((Date.parse(incident.closed_at) - Date.parse(incident.opened_at)) / 1000);
}

function Row({
  incident,
  chosen,
  onChoose,
}: {
  incident: Incident;
  chosen: boolean;
  onChoose: () => void;
}) {
  const verdict = incident.verdicts[0];
  const job = { job: incident.job, tenant: incident.tenant, attempt: String(incident.attempt) };
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          checked={chosen}
          onChange={onChoose}
          aria-label={`compare ${incident.id}`}
        />
      </td>
      <td>
        <Time at={incident.opened_at} />
      </td>
      <td>
        <State state={incident.state} />
        <TakenBy incident={incident} />
      </td>
      <th scope="row">
        <IncidentLink id={incident.id} />
      </th>
      <td>
        <JobLink job={incident.job} tenant={incident.tenant} />
        {incident.attempt > 0 && <span class="soft"> attempt {incident.attempt}</span>}
      </td>
      <td class="wide">
        <Sentence job={job} text={verdict?.summary ?? ""} />
      </td>
      <td>{verdict?.cause}</td>
      <td data-label="culprits:">
        {verdict !== undefined && (
          <RankLinks job={job} ranks={shortenRanks(culpritRanks(verdict).ranks, 6)} />
        )}
      </td>
      <td data-label="on">
        {verdict !== undefined && <CulpritHosts verdict={verdict} most={3} />}
      </td>
      <td class="number" data-label="lasted">
        {duration(incident)}
      </td>
    </tr>
  );
}

// The midnight, in this zone, that begins the day so many days after this one; empty if no day is
// chosen. A day lasts until the midnight that ends it, because the daemon counts whole seconds. In
// the reader's zone it may have 23 or 25 hours.
function midnight(day: string, after: number, zone: Zone): string {
  const at = new Date(`${day}T00:00:00${zone === "utc" ? "Z" : ""}`);
  if (Number.isNaN(at.getTime())) return "";
  if (zone === "utc") at.setUTCDate(at.getUTCDate() + after);
  else at.setDate(at.getDate() + after);
  return at.toISOString();
}

export function History() {
  const { query } = useAddress();
  const zone = useZone();
  const zoneWord = zoneName(zone).split(",")[0]; // the offset of today may not be that of the day
  const filter = (name: string) => query.get(name) ?? "";
  const [chosen, setChosen] = useState<string[]>([]);
  const offset = Number(filter("offset")) || 0;
  const grouped = filter("grouped") === "1";
  const filters = {
    job: filter("job"),
    tenant: filter("tenant"),
    host: filter("host"),
    cause: filter("cause"),
    signature: filter("signature"),
    from: midnight(filter("from"), 0, zone),
    until: midnight(filter("until"), 1, zone),
    offset: String(offset),
    limit: String(kLimit),
  };
  const live = useLive<ListIncidentsResponse>(grouped ? "" : incidentsPath(filters));
  const turnTo = (next: number) => setParameters({ offset: next === 0 ? "" : String(next) });
  const choose = (id: string) =>
    setChosen((old) =>
      old.includes(id) ? old.filter((one) => one !== id) : [...old, id].slice(-2),
    );
  const set = (name: string) => (event: Event) =>
    setParameters({ [name]: (event.currentTarget as HTMLInputElement).value.trim(), offset: "" });
  const value = live.value;
  return (
    <main>
      <h1>Incidents</h1>
      <p>
        <a href={formatAddress(["questions"])}>Recurring hangs</a>: hosts, GPUs, call sites and
        causes, and the time lost
      </p>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Job{" "}
          <input
            defaultValue={filter("job")}
            key={`job ${filter("job")}`}
            onChange={set("job")}
            size={14}
          />
        </label>
        <label>
          Tenant{" "}
          <input
            defaultValue={filter("tenant")}
            key={`tenant ${filter("tenant")}`}
            onChange={set("tenant")}
            size={10}
          />
        </label>
        <label>
          Host{" "}
          <input
            defaultValue={filter("host")}
            key={`host ${filter("host")}`}
            onChange={set("host")}
            size={14}
          />
        </label>
        <label>
          Cause{" "}
          <select value={filter("cause")} onChange={set("cause")}>
            <option value="">any</option>
            {kCauses.map((cause) => (
              <option key={cause} value={cause}>
                {cause}
              </option>
            ))}
          </select>
        </label>
        <label>
          From ({zoneWord}) <input type="date" value={filter("from")} onChange={set("from")} />
        </label>
        <label>
          To ({zoneWord}) <input type="date" value={filter("until")} onChange={set("until")} />
        </label>
        <label>
          <input
            type="checkbox"
            checked={grouped}
            onChange={() => setParameters({ grouped: grouped ? "" : "1", offset: "" })}
          />{" "}
          Group alike hangs
        </label>
        {filter("signature") !== "" && (
          <button type="button" onClick={() => setParameters({ signature: "", offset: "" })}>
            Only {filter("signature")} ×
          </button>
        )}
      </form>
      {grouped ? (
        <Groups filters={filters} offset={offset} limit={kLimit} onPage={turnTo} />
      ) : value === undefined ? (
        <Waiting live={live} what="incidents" />
      ) : (
        <>
          <Stale live={live} />
          {value.note !== "" && (
            <p class="problem" role="alert">
              {value.note}
            </p>
          )}
          {value.repeated.length > 0 && (
            <div class="card">
              <h2>Repeated</h2>
              <ul>
                {value.repeated.map((one) =>
                  one.host !== "" ? (
                    <li key={one.host}>
                      Host <HostLink host={one.host} /> was at fault in{" "}
                      {plural(one.incidents, "incident")}
                    </li>
                  ) : (
                    <li key={JSON.stringify([one.tenant, one.job, one.rank])}>
                      <RankLink
                        job={{ job: one.job, tenant: one.tenant, attempt: "" }}
                        rank={one.rank}
                      >
                        Rank {one.rank}
                      </RankLink>{" "}
                      of <JobLink job={one.job} tenant={one.tenant} /> was at fault in{" "}
                      {plural(one.incidents, "incident")}
                    </li>
                  ),
                )}
              </ul>
            </div>
          )}
          <p class="actions">
            <span>{plural(value.total, "incident")}</span>
            {chosen.length === 2 ? (
              <a class="button" href={formatAddress(["compare", ...chosen])}>
                Compare the two
              </a>
            ) : (
              <span class="soft">Select two incidents to compare</span>
            )}
          </p>
          {value.incidents.length > 0 && (
            <Table label="incidents" kind="stacked" columns={columns}>
              {value.incidents.map((incident) => (
                <Row
                  key={incident.id}
                  incident={incident}
                  chosen={chosen.includes(incident.id)}
                  onChoose={() => choose(incident.id)}
                />
              ))}
            </Table>
          )}
          <Pager offset={offset} limit={kLimit} total={value.total} onChange={turnTo} />
        </>
      )}
    </main>
  );
}
