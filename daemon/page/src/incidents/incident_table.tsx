// SPDX-License-Identifier: Apache-2.0
// The incidents of one rank, communicator or host, newest first.

import { CulpritHosts, RankSetLinks, Sentence } from "../links";
import type { Incident } from "../messages";
import { type Column, IncidentLink, JobLink, State, Table, TakenBy, Time } from "../parts";
import { culpritRanks } from "../totals";

function addressOf(incident: Incident) {
  return { job: incident.job, tenant: incident.tenant, attempt: String(incident.attempt) };
}

export function IncidentTable({ incidents, withJob }: { incidents: Incident[]; withJob: boolean }) {
  const columns: Column[] = [
    ["Incident"],
    ["State"],
    ["Opened"],
    ...(withJob ? [["Job"] as Column] : []),
    ["Cause"],
    ["Culprits"],
    ["Hosts of culprits"],
    ["What happened"],
  ];
  return (
    <Table label="incidents" kind="stacked" columns={columns}>
      {incidents.map((incident) => {
        const verdict = incident.verdicts[0];
        return (
          <tr key={incident.id}>
            <th scope="row">
              <IncidentLink id={incident.id} />
            </th>
            <td>
              <State state={incident.state} />
              <TakenBy incident={incident} />
            </td>
            <td>
              <Time at={incident.opened_at} />
            </td>
            {withJob && (
              <td>
                <JobLink job={incident.job} tenant={incident.tenant} />
                {incident.attempt > 0 && <span class="soft"> attempt {incident.attempt}</span>}
              </td>
            )}
            <td>{verdict?.cause}</td>
            <td data-label="culprits:">
              {verdict !== undefined && (
                <RankSetLinks job={addressOf(incident)} set={culpritRanks(verdict)} most={4} />
              )}
            </td>
            <td data-label="on">
              {verdict !== undefined && <CulpritHosts verdict={verdict} most={3} />}
            </td>
            <td class="wide">
              <Sentence job={addressOf(incident)} text={verdict?.summary ?? ""} />
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
