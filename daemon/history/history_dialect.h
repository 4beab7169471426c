// SPDX-License-Identifier: Apache-2.0
// The parts of SQL in which the layouts of SQLite and PostgreSQL differ. SQLite's grew table by
// table (docs/decisions/daemon.md); PostgreSQL's has all facts of an incident in one row, and may
// belong to several daemons.
#pragma once

namespace rollcall {

struct HistoryDialect {
  // Rows that a daemon continues carry its name, in the column `daemon`; a row of `owners` counts
  // more.
  bool has_daemons;

  // Columns of a row of `incidents`.
  const char* tenant;
  const char* attempt;
  const char* has_signature;  // a condition with one value

  const char* incident_key;  // columns of `incidents`
  const char* culprit_key;   // of `culprits`, equal to those
  const char* joined;        // culprits with their incidents, as tables
  const char* joined_tenant;

  // For groups: the table s with signature, tenant, hang, confirmed and opened_ns; joined with
  // culprits; with `job`, `id` and `summary`. `chosen`: whether the conditions "$0" of a filter are
  // true of such a row.
  const char* signatures;
  const char* signed_culprits;
  const char* signed_incidents;
  const char* chosen;

  // Each saves one row, or replaces it. With daemons, its last value is the daemon that continues
  // it.
  const char* save_alert;  // incident, sequence, kind, made_ns, body, sent
  const char* save_hosts;  // {rows}: tenant, job, attempt, host, seen_ns
  const char*
      save_attempt;  // tenant, job, attempt, world_size, restarts, launch, has_twin, seen_ns

  const char* trim_actions;  // deletes the oldest actions beyond so many bytes, about
  const char* numbers;       // tenant, job and highest number of each job's incidents
  const char* last_number;   // the highest of a tenant's job
  const char* begin_read;    // begins a transaction that sees one state of all tables
};

inline constexpr HistoryDialect kSqliteDialect = {
    false,
    // The release before layout 2 wrote no keys.
    "coalesce((SELECT tenant FROM incident_keys WHERE incident = id), 'default')",
    "coalesce((SELECT attempt FROM incident_keys WHERE incident = id), 0)",
    "id IN (SELECT incident FROM incident_signatures WHERE signature = ?)",
    "id",
    "incident",
    "culprits JOIN incidents ON id = culprits.incident LEFT JOIN incident_keys ON "
    "incident_keys.incident = id",
    "coalesce(tenant, '')",
    "incident_signatures AS s",
    "incident_signatures AS s JOIN culprits ON culprits.incident = s.incident",
    "incident_signatures AS s JOIN incidents ON id = s.incident",
    "s.incident IN (SELECT id FROM incidents WHERE $0)",
    R"sql(
INSERT INTO outbox (incident, sequence, kind, made_ns, body, sent)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (incident, sequence) DO UPDATE SET
  kind = excluded.kind, made_ns = excluded.made_ns, body = excluded.body, sent = excluded.sent)sql",
    R"sql(
INSERT INTO job_hosts (tenant, job, attempt, host, seen_ns)
VALUES {rows}
ON CONFLICT (tenant, job, attempt, host) DO UPDATE SET seen_ns = excluded.seen_ns)sql",
    R"sql(
INSERT INTO job_attempts
  (tenant, job, attempt, world_size, restarts, launch, has_twin, seen_ns)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, job, attempt) DO UPDATE SET
  world_size = excluded.world_size, restarts = excluded.restarts, launch = excluded.launch,
  has_twin = excluded.has_twin, seen_ns = excluded.seen_ns)sql",
    R"sql(
DELETE FROM actions WHERE (rowid) IN (
  SELECT rowid FROM (
    SELECT rowid, sum(64 + length(who) + length(action) + length(object) + length(peer)) OVER (
      ORDER BY at_ns DESC ROWS UNBOUNDED PRECEDING) AS kept
    FROM actions) AS summed
  WHERE kept > ?))sql",
    "SELECT coalesce(tenant, ''), job, max(number) FROM incidents LEFT JOIN incident_keys ON "
    "incident_keys.incident = id GROUP BY 1, 2",
    "SELECT coalesce(max(number), 0) FROM incidents WHERE coalesce((SELECT tenant FROM "
    "incident_keys WHERE incident = id), 'default') = ? AND job = ?",
    "BEGIN",
};

inline constexpr HistoryDialect kPostgresDialect = {
    true,
    "tenant",
    "attempt",
    "signature = ?",
    "id, opened_ns",
    "incident, incident_opened_ns",
    "culprits JOIN incidents ON (id, opened_ns) = (culprits.incident, incident_opened_ns)",
    "tenant",
    "incidents AS s",
    "incidents AS s JOIN culprits ON incident = id AND incident_opened_ns = opened_ns",
    "incidents AS s",
    "$0",
    R"sql(
INSERT INTO outbox (incident, sequence, kind, made_ns, body, sent, daemon)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (incident, sequence) DO UPDATE SET
  kind = excluded.kind, made_ns = excluded.made_ns, body = excluded.body, sent = excluded.sent,
  daemon = excluded.daemon)sql",
    R"sql(
INSERT INTO job_hosts (tenant, job, attempt, host, seen_ns, daemon)
VALUES {rows}
ON CONFLICT (tenant, job, attempt, host) DO UPDATE SET seen_ns = excluded.seen_ns, daemon = excluded.daemon)sql",
    R"sql(
INSERT INTO job_attempts
  (tenant, job, attempt, world_size, restarts, launch, has_twin, seen_ns, daemon)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, job, attempt) DO UPDATE SET
  world_size = excluded.world_size, restarts = excluded.restarts, launch = excluded.launch,
  has_twin = excluded.has_twin, seen_ns = excluded.seen_ns, daemon = excluded.daemon)sql",
    R"sql(
DELETE FROM actions WHERE (at_ns, content) IN (
  SELECT at_ns, content FROM (
    SELECT at_ns, content, sum(64 + length(who) + length(action) + length(object) + length(peer)) OVER (
      ORDER BY at_ns DESC ROWS UNBOUNDED PRECEDING) AS kept
    FROM actions) AS summed
  WHERE kept > ?))sql",
    "SELECT tenant, job, number FROM job_numbers",
    "SELECT coalesce(max(number), 0) FROM job_numbers WHERE tenant = ? AND job = ?",
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};

}  // namespace rollcall
