// SPDX-License-Identifier: Apache-2.0
// What the hosts of an incident showed when their agents looked at them.
import { plural, seconds } from "../format";
import { HostLink } from "../links";
import type { HostFact, Incident } from "../messages";
import { Section, Table } from "../parts";
import { hostFactWords } from "./host_fact_words";

const kMostRows = 40;

function when(fact: HostFact): string {
  return fact.age_seconds > 0 ? `${seconds(fact.age_seconds)} before` : "at that moment";
}

export function HostFactsTable({ rows }: { rows: { host: string; fact: HostFact }[] }) {
  if (rows.length === 0) return null;
  return (
    <>
      <Table
        label="facts about hosts"
        kind="hosts"
        columns={[["Host"], ["What it shows"], ["When"]]}
      >
        {rows.slice(0, kMostRows).map(({ host, fact }, index) => (
          <tr key={index}>
            <td>
              <HostLink host={host} />
            </td>
            <td class="wide" title={fact.kind}>
              {hostFactWords(fact)}
            </td>
            <td>{when(fact)}</td>
          </tr>
        ))}
      </Table>
      {rows.length > kMostRows && (
        <p class="soft">{rows.length - kMostRows} more are in incident.json.</p>
      )}
    </>
  );
}

export function Hosts({ incident }: { incident: Incident }) {
  const rows = incident.host_facts.flatMap((host) =>
    host.facts.map((fact) => ({ host: host.host, fact })),
  );
  const shown = incident.host_facts.filter((host) => host.facts.length > 0).length;
  const silent = Math.max(incident.host_facts_total - shown, 0);
  if (rows.length === 0 && silent === 0) return null;
  return (
    <Section title="What the hosts show" id="hosts">
      <HostFactsTable rows={rows} />
      {silent > 0 && (
        <p class="soft">
          {plural(silent, "host")} {shown > 0 && "more "}without anything unusual.
        </p>
      )}
    </Section>
  );
}
