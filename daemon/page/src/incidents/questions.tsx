// SPDX-License-Identifier: Apache-2.0
// Recurring hangs: confirmed incidents over the whole history, by host, GPU, cause and so on, and the
// time that they cost.
import { formatAddress, setParameters, useAddress } from "../address";
import { questionsPath } from "../api";
import { count, plural } from "../format";
import { HostLink } from "../links";
import { useLive } from "../live";
import type { CountIncidentsResponse, IncidentCount } from "../messages";
import { type Column, IncidentLink, Stale, Table, Time, Waiting } from "../parts";
import { rankHours } from "../totals";

const kDayMs = 86_400_000;
const kLimit = 50;
const kinds: [kind: string, words: string][] = [
  ["host", "Host"],
  ["gpu", "GPU"],
  ["label:switch", "Switch"],
  ["label:rack", "Rack"],
  ["user", "User"],
  ["framework", "Framework"],
  ["call_site", "Call site"],
  ["cause", "Cause"],
  ["tenant", "Tenant"],
  ["job", "Job"],
];
const ranges = ["7", "30", "90"];

// Whole days, so that the address of the request stays the same for a day.
function begin(days: string): string {
  const today = Math.floor(Date.now() / kDayMs) * kDayMs;
  return new Date(today - (Number(days) - 1) * kDayMs).toISOString();
}

// The incidents that the row counts, where the list has the filter.
function listOf(kind: string, value: string, filters: Record<string, string>): string | undefined {
  if (!["host", "cause", "tenant", "job"].includes(kind)) return undefined;
  const { from = "", ...others } = filters;
  return formatAddress(["history"], { ...others, from: from.slice(0, 10), [kind]: value });
}

function Row({
  kind,
  one,
  most,
  filters,
}: {
  kind: string;
  one: IncidentCount;
  most: number;
  filters: Record<string, string>;
}) {
  const list = listOf(kind, one.value, filters);
  return (
    <tr>
      <th scope="row">{kind === "host" ? <HostLink host={one.value} /> : one.value}</th>
      <td class="share" aria-hidden="true">
        <span style={{ width: `${(100 * one.incidents) / most}%` }} />
      </td>
      <td class="number" data-label="incidents:">
        {list === undefined ? count(one.incidents) : <a href={list}>{count(one.incidents)}</a>}
      </td>
      <td class="number" data-label="certain:">
        {count(one.certain_incidents)}
      </td>
      <td class="number" data-label="rank-hours lost:">
        {rankHours(one.lost_rank_seconds)}
      </td>
      <td data-label="last:">
        <IncidentLink id={one.newest}>
          <Time at={one.last} />
        </IncidentLink>
      </td>
    </tr>
  );
}

function Choice({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: [value: string, words: string][];
  onChange: (value: string) => void;
}) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Questions({ causes }: { causes: string[] }) {
  const { query } = useAddress();
  const filter = (name: string) => query.get(name) ?? "";
  const set = (name: string) => (value: string) => setParameters({ [name]: value.trim() });
  const typed = (name: string) => (event: Event) =>
    set(name)((event.currentTarget as HTMLInputElement).value);
  const kind = filter("by") || "host";
  const days = filter("days") || "30";
  const filters = {
    from: begin(days),
    cause: filter("cause"),
    tenant: filter("tenant"),
    job: filter("job"),
  };
  // A query about months is not repeated with each event.
  const live = useLive<CountIncidentsResponse>(
    questionsPath({ by: kind, ...filters, limit: String(kLimit) }),
    false,
  );
  const known: [string, string][] = kinds.some(([one]) => one === kind)
    ? kinds
    : [...kinds, [kind, kind]];
  const name = known.find(([one]) => one === kind)?.[1] ?? kind;
  const columns: Column[] = [
    [name],
    [<span class="hidden">Share</span>],
    ["Incidents", "number"],
    ["Certain", "number"],
    ["Rank-hours lost", "number"],
    ["Last"],
  ];
  const value = live.value;
  const most = Math.max(1, ...(value?.counts ?? []).map((one) => one.incidents));
  return (
    <main>
      <h1>Recurring hangs</h1>
      <p class="soft">
        Confirmed incidents. One with culprits on two hosts counts for both. Lost: the ranks of the
        job, from the first wait to the end of the hang.
      </p>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Choice label="By" value={kind} options={known} onChange={set("by")} />
        <Choice
          label="In the last"
          value={days}
          options={ranges.map((one) => [one, `${one} days`])}
          onChange={set("days")}
        />
        <Choice
          label="Cause"
          value={filter("cause")}
          options={[["", "any"], ...causes.map((one): [string, string] => [one, one])]}
          onChange={set("cause")}
        />
        <label>
          Tenant <input defaultValue={filter("tenant")} onChange={typed("tenant")} size={10} />
        </label>
        <label>
          Job <input defaultValue={filter("job")} onChange={typed("job")} size={14} />
        </label>
      </form>
      {value === undefined ? (
        <Waiting live={live} what="the history" />
      ) : (
        <>
          <Stale live={live} />
          {value.note !== "" && (
            <p class="problem" role="alert">
              {value.note}
            </p>
          )}
          {value.counts.length === 0 ? (
            <p class="soft">No confirmed incident of this time has a {name.toLowerCase()} here.</p>
          ) : (
            <Table label="what comes back" kind="stacked" columns={columns}>
              {value.counts.map((one) => (
                <Row key={one.value} kind={kind} one={one} most={most} filters={filters} />
              ))}
            </Table>
          )}
          {value.total > value.counts.length && (
            <p class="soft">
              The first {value.counts.length} of {plural(value.total, "value")}.
            </p>
          )}
        </>
      )}
      <p>
        <a href={formatAddress(["history"])}>All incidents</a>
      </p>
    </main>
  );
}
