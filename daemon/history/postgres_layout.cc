// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/postgres_layout.h"

#include <spdlog/spdlog.h>

#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

// Another release may wait for as long as its own migration takes.
constexpr char kMigrationTimes[] = "SET LOCAL lock_timeout = 0";

// Texts are compared by their bytes, as SQLite does: an order that depends on the server's locale
// would change with it. Incidents, culprits and actions have a partition for each week
// (postgres_partitions.h).
//
// The rows of what a daemon continues carry its name in `daemon`; the job's row in `owners` (layout
// 3) counts more.
const std::vector<const char*> kLayout1 = {
    "CREATE TABLE incidents (id text COLLATE \"C\" NOT NULL, opened_ns bigint NOT NULL, tenant "
    "text COLLATE \"C\" NOT NULL, job text COLLATE \"C\" NOT NULL, attempt bigint NOT NULL, number "
    "bigint NOT NULL, cause text COLLATE \"C\" NOT NULL, state text COLLATE \"C\" NOT NULL, "
    "closed_ns bigint NOT NULL, confirmed bigint NOT NULL, signature text COLLATE \"C\" NOT NULL, "
    "hang text COLLATE \"C\" NOT NULL, daemon text COLLATE \"C\" NOT NULL, summary bytea NOT NULL, "
    "stacks bytea NOT NULL, PRIMARY KEY (id, opened_ns)) PARTITION BY RANGE (opened_ns)",
    "CREATE INDEX incidents_by_time ON incidents (opened_ns DESC, id)",
    "CREATE INDEX incidents_by_job ON incidents (job, tenant, opened_ns DESC)",
    "CREATE INDEX incidents_by_tenant ON incidents (tenant, opened_ns DESC)",
    "CREATE INDEX incidents_by_cause ON incidents (cause, opened_ns DESC)",
    "CREATE INDEX incidents_by_signature ON incidents (signature, tenant, opened_ns DESC)",
    "CREATE INDEX incidents_open ON incidents (daemon) WHERE closed_ns = 0",
    "CREATE TABLE culprits (incident text COLLATE \"C\" NOT NULL, incident_opened_ns bigint NOT "
    "NULL, host text COLLATE \"C\" NOT NULL, rank bigint NOT NULL, PRIMARY KEY (incident, "
    "incident_opened_ns, host, rank)) PARTITION BY RANGE (incident_opened_ns)",
    "CREATE INDEX culprits_by_host ON culprits (host)",
    // `content`: so that a row which is written again, because its answer was lost, is one row.
    "CREATE TABLE actions (at_ns bigint NOT NULL, content text COLLATE \"C\" NOT NULL, who text "
    "NOT NULL, action text NOT NULL, object text NOT NULL, peer text NOT NULL, daemon text COLLATE "
    "\"C\" NOT NULL, PRIMARY KEY (at_ns, content)) PARTITION BY RANGE (at_ns)",
    // Rows of these last for hours or days, so they have no partitions.
    "CREATE TABLE outbox (incident text COLLATE \"C\" NOT NULL, sequence bigint NOT NULL, kind "
    "text NOT NULL, made_ns bigint NOT NULL, body bytea NOT NULL, sent bigint NOT NULL, daemon "
    "text COLLATE \"C\" NOT NULL, PRIMARY KEY (incident, sequence))",
    "CREATE TABLE outbox_receivers (incident text COLLATE \"C\" NOT NULL, sequence bigint NOT "
    "NULL, receiver text COLLATE \"C\" NOT NULL, PRIMARY KEY (incident, sequence, receiver))",
    "CREATE TABLE job_hosts (tenant text COLLATE \"C\" NOT NULL, job text COLLATE \"C\" NOT NULL, "
    "attempt bigint NOT NULL, host text COLLATE \"C\" NOT NULL, seen_ns bigint NOT NULL, daemon "
    "text COLLATE \"C\" NOT NULL, PRIMARY KEY (tenant, job, attempt, host))",
    "CREATE TABLE job_attempts (tenant text COLLATE \"C\" NOT NULL, job text COLLATE \"C\" NOT "
    "NULL, attempt bigint NOT NULL, world_size bigint NOT NULL, restarts text NOT NULL, launch "
    "text NOT NULL, has_twin bigint NOT NULL, seen_ns bigint NOT NULL, daemon text COLLATE \"C\" "
    "NOT NULL, PRIMARY KEY (tenant, job, attempt))",
    "CREATE TABLE attempt_members (tenant text COLLATE \"C\" NOT NULL, job text COLLATE \"C\" NOT "
    "NULL, attempt bigint NOT NULL, host text COLLATE \"C\" NOT NULL, pid bigint NOT NULL, "
    "start_time bigint NOT NULL, rank bigint NOT NULL, PRIMARY KEY (tenant, job, attempt, host, "
    "pid, start_time))",
    // A daemon reads these with each connection, however many incidents there are.
    "CREATE TABLE job_numbers (tenant text COLLATE \"C\" NOT NULL, job text COLLATE \"C\" NOT "
    "NULL, number bigint NOT NULL, opened_ns bigint NOT NULL, PRIMARY KEY (tenant, job))",
    "CREATE TABLE silences (id text COLLATE \"C\" PRIMARY KEY, until_ns bigint NOT NULL, body "
    "bytea NOT NULL)",
};

// For queries over all history: incident_facts.h, history_weeks.cc. The keys cover what queries
// read.
const std::vector<const char*> kLayout2 = {
    "CREATE TABLE incident_facts (kind text COLLATE \"C\" NOT NULL, opened_ns bigint NOT NULL, "
    "value text COLLATE \"C\" NOT NULL, incident text COLLATE \"C\" NOT NULL, tenant text COLLATE "
    "\"C\" NOT NULL, cause text COLLATE \"C\" NOT NULL, certain bigint NOT NULL, lost_rank_ms "
    "bigint NOT NULL, PRIMARY KEY (kind, opened_ns, value, incident) INCLUDE (tenant, cause, "
    "certain, lost_rank_ms)) PARTITION BY RANGE (opened_ns)",
    "CREATE INDEX facts_by_time ON incident_facts (opened_ns)",
    "CREATE TABLE week_counts (week bigint NOT NULL, kind text COLLATE \"C\" NOT NULL, tenant text "
    "COLLATE \"C\" NOT NULL, cause text COLLATE \"C\" NOT NULL, value text COLLATE \"C\" NOT NULL, "
    "incidents bigint NOT NULL, certain bigint NOT NULL, lost_rank_ms bigint NOT NULL, last_ns "
    "bigint NOT NULL, PRIMARY KEY (week, kind, tenant, cause, value) INCLUDE (incidents, certain, "
    "lost_rank_ms, last_ns))",
    "CREATE TABLE counted_weeks (week bigint PRIMARY KEY, mark bigint NOT NULL)",
    "CREATE TABLE facts_filled (id bigint PRIMARY KEY, below_ns bigint NOT NULL)",
    "INSERT INTO facts_filled VALUES (1, 9223372036854775807)",
};

// For several daemons: daemon/fleet/fleet_store.h. Each owner has a row in `daemons`, so that a
// daemon that takes a job can lock the lease of the daemon that had it. Jobs that were given up
// keep their row and its token for two weeks. `daemon_starts` shows which of two starts of a daemon
// came first.
const std::vector<const char*> kLayout3 = {
    "CREATE TABLE daemons (name text COLLATE \"C\" PRIMARY KEY, address text NOT NULL, page text "
    "NOT NULL, incarnation text COLLATE \"C\" NOT NULL, secret text NOT NULL, alive_since "
    "timestamptz NOT NULL, expires_at timestamptz NOT NULL)",
    "CREATE SEQUENCE owner_tokens",
    "CREATE TABLE owners (tenant text COLLATE \"C\" NOT NULL, job text COLLATE \"C\" NOT NULL, "
    "daemon text COLLATE \"C\" REFERENCES daemons (name), incarnation text COLLATE \"C\" NOT NULL, "
    "token bigint NOT NULL, since timestamptz NOT NULL, PRIMARY KEY (tenant, job))",
    "CREATE INDEX owners_by_daemon ON owners (daemon)",
    "CREATE TABLE daemon_starts (incarnation text COLLATE \"C\" PRIMARY KEY, number bigint "
    "GENERATED ALWAYS AS IDENTITY, at timestamptz NOT NULL DEFAULT clock_timestamp())",
};

// Which daemon agents ask for a job whose owner they cannot reach.
const std::vector<const char*> kLayout4 = {
    "ALTER TABLE owners ADD COLUMN wanted_by text, ADD COLUMN wanted_at timestamptz",
};

struct Layout {
  // The lowest layout whose release can still use the tables after this change. Daemons of that
  // release run on while another one makes the change.
  int usable_from;
  const std::vector<const char*>& statements;
};

// Number n is at n - 1. Only additions: a statement must not hold back those who read and write for
// longer than it takes to change the catalog.
const Layout kLayouts[] = {{1, kLayout1}, {1, kLayout2}, {1, kLayout3}, {1, kLayout4}};
static_assert(std::size(kLayouts) == kPostgresLayout);

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

// The first schema of a search_path that is set, or empty.
absl::StatusOr<std::string> SchemaOfSearchPath(SqlDatabase* db) {
  Sql row(db, "SELECT setting, source FROM pg_settings WHERE name = 'search_path'");
  if (!row.Next()) return row.status();
  const std::string source = row.Bytes(1);
  if (source == "default" || source == "configuration file") return "";
  const std::string setting = row.Bytes(0);
  absl::string_view first = absl::string_view(setting).substr(0, setting.find(','));
  first = absl::StripAsciiWhitespace(first);
  if (first.size() > 1 && first.front() == '"' && first.back() == '"') {
    first = first.substr(1, first.size() - 2);
  }
  return first == "$user" ? "" : std::string(first);
}

bool IsThere(SqlDatabase* db, const std::string& text, const std::string& name) {
  Sql row(db, text, name);
  return row.Next();
}

// What the database has: its layout, and the lowest release that may use it. 0 if there is none.
struct Found {
  int layout = 0, usable_from = 0;
};

absl::StatusOr<Found> FindLayout(SqlDatabase* db) {
  if (!IsThere(db, "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?",
               "layouts")) {
    return Found();
  }
  Sql row(db, "SELECT coalesce(max(number), 0), coalesce(max(usable_from), 0) FROM layouts");
  if (!row.Next()) return row.status();
  return Found{static_cast<int>(row.Integer(0)), static_cast<int>(row.Integer(1))};
}

absl::Status CheckUsable(const Found& found) {
  if (found.usable_from <= kPostgresLayout) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "the database has layout ", found.layout,
      " of a later release of Rollcall, and this release supports layout ", kPostgresLayout,
      "\n  run the later release here too, or give this daemon a schema of "
      "its own:  --store='postgresql://...?options=-csearch_path%3DNAME'"));
}

absl::Status Apply(SqlDatabase* db, int number) {
  const Layout& layout = kLayouts[number - 1];
  for (const char* statement : layout.statements) {
    const absl::Status status = Sql(db, statement).Run();
    if (!status.ok()) return status;
  }
  return Sql(db, "INSERT INTO layouts (number, usable_from) VALUES (?, ?)", number,
             layout.usable_from)
      .Run();
}

// Inside a transaction, with the lock.
absl::Status ApplyMissing(SqlDatabase* db) {
  const absl::StatusOr<Found> found = FindLayout(db);
  if (!found.ok()) return found.status();
  absl::Status status = CheckUsable(*found);
  if (status.ok() && found->layout == 0) {
    status = Sql(db,
                 "CREATE TABLE layouts (number bigint PRIMARY KEY, usable_from bigint NOT "
                 "NULL, made_at timestamptz NOT NULL DEFAULT now())")
                 .Run();
  }
  for (int number = found->layout + 1; status.ok() && number <= kPostgresLayout; ++number) {
    status = Apply(db, number);
    if (status.ok()) spdlog::info("the database of the history has layout {} now", number);
  }
  return status;
}

absl::Status CreateSchema(SqlDatabase* db, const std::string& schema) {
  // The server asks for the right to create schemas even if this one is there.
  if (IsThere(db, "SELECT 1 FROM pg_namespace WHERE nspname = ?", schema)) return absl::OkStatus();
  const absl::Status made =
      Sql(db, absl::StrCat("CREATE SCHEMA IF NOT EXISTS ", Quoted(schema))).Run();
  if (absl::IsUnavailable(made)) return made;
  // Another daemon may have made it at this moment.
  if (made.ok() || IsThere(db, "SELECT 1 FROM pg_namespace WHERE nspname = ?", schema)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot create the schema ", schema, ": ",
                                                    made.message(),
                                                    "\n  let the owner of the "
                                                    "database create it:  CREATE SCHEMA ",
                                                    Quoted(schema), " AUTHORIZATION the_user"));
}

}  // namespace

absl::StatusOr<std::string> UseSchema(SqlDatabase* db) {
  absl::StatusOr<std::string> schema = SchemaOfSearchPath(db);
  if (!schema.ok()) return schema.status();
  if (schema->empty()) *schema = "rollcall";
  absl::Status status = CreateSchema(db, *schema);
  if (status.ok()) status = Sql(db, absl::StrCat("SET search_path TO ", Quoted(*schema))).Run();
  if (!status.ok()) return status;
  return schema;
}

absl::Status LockTables(SqlDatabase* db) {
  return Sql(db, "SELECT pg_advisory_xact_lock(hashtext('rollcall'), hashtext(current_schema()))")
      .Run();
}

absl::Status Migrate(SqlDatabase* db) {
  const absl::StatusOr<Found> found = FindLayout(db);
  if (!found.ok()) return found.status();
  const absl::Status usable = CheckUsable(*found);
  if (!usable.ok() || found->layout >= kPostgresLayout) return usable;
  SqlTransaction transaction(db);
  absl::Status status = transaction.begun();
  if (status.ok()) status = Sql(db, kMigrationTimes).Run();
  if (status.ok()) status = LockTables(db);
  if (status.ok()) status = ApplyMissing(db);
  return transaction.End(status);
}

absl::Status NoteStart(SqlDatabase* db, const std::string& incarnation) {
  if (incarnation.empty()) return absl::OkStatus();
  return Sql(db, "INSERT INTO daemon_starts (incarnation) VALUES (?) ON CONFLICT DO NOTHING",
             incarnation)
      .Run();
}

}  // namespace rollcall
