// SPDX-License-Identifier: Apache-2.0
// Hangs that are alike: how often they came back, and with which hosts, ranks and jobs.
import { formatAddress } from "../address";
import { incidentsPath } from "../api";
import { useLive } from "../live";
import type { IncidentGroup, ListIncidentsResponse, Recurring } from "../messages";
import { type Column, IncidentLink, Pager, Stale, Table, Time, Waiting } from "../parts";
import { rankHours } from "../totals";

const columns: Column[] = [
  ["Hangs", "number"],
  ["Signature"],
  ["How often"],
  ["Rank-hours lost", "number"],
  ["Hosts"],
  ["Ranks"],
  ["Jobs"],
  ["First"],
  ["Last"],
  ["Newest"],
];

// "node-17 ×4, node-3"
function inShort(names: Recurring[]): string {
  return names.map((one) => (one.hangs > 1 ? `${one.name} ×${one.hangs}` : one.name)).join(", ");
}

function Row({ group }: { group: IncidentGroup }) {
  return (
    <tr>
      <td class="number">{group.hangs}</td>
      <th scope="row">
        <a href={formatAddress(["history"], { signature: group.signature, tenant: group.tenant })}>
          {group.signature}
        </a>
      </th>
      <td>{group.sentence}</td>
      <td class="number">{rankHours(group.lost_rank_seconds)}</td>
      <td>{inShort(group.hosts)}</td>
      <td>{inShort(group.ranks)}</td>
      <td>{inShort(group.jobs)}</td>
      <td>
        <Time at={group.first} />
      </td>
      <td>
        <Time at={group.last} />
      </td>
      <td>
        <IncidentLink id={group.newest} />
      </td>
    </tr>
  );
}

export function Groups({
  filters,
  offset,
  limit,
  onPage,
}: {
  filters: Record<string, string>;
  offset: number;
  limit: number;
  onPage: (offset: number) => void;
}) {
  const live = useLive<ListIncidentsResponse>(incidentsPath({ ...filters, grouped: "1" }));
  const value = live.value;
  if (value === undefined) return <Waiting live={live} what="incidents" />;
  return (
    <>
      <Stale live={live} />
      {value.groups.length === 0 ? (
        <p class="soft">No confirmed incident matches.</p>
      ) : (
        <Table label="groups" columns={columns}>
          {value.groups.map((group) => (
            <Row key={`${group.tenant}\n${group.signature}`} group={group} />
          ))}
        </Table>
      )}
      <Pager offset={offset} limit={limit} total={value.total} onChange={onPage} />
    </>
  );
}

// Of an incident: "the 4th time in 7 days, each time with a culprit on node-17".
export function Recurrence({ group }: { group: IncidentGroup | undefined }) {
  if (group === undefined || group.sentence === "") return null;
  return (
    <p>
      This is{" "}
      <a href={formatAddress(["history"], { signature: group.signature, tenant: group.tenant })}>
        {group.sentence}
      </a>
      .
    </p>
  );
}
