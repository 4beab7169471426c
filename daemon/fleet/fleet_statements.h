// SPDX-License-Identifier: Apache-2.0
// The statements on the fleet's tables, each one whole. For postgres_fleet.cc, which runs them and
// says why they are as they are.
//
// The jobs of a statement are two arrays, tenants and jobs: `wanted` has them in order.
#pragma once

namespace rollcall {

// These delete what no daemon needs any more. A dead daemon's row stays as long as jobs are its.
inline constexpr const char* kPruneFleet[] = {
    R"sql(
WITH gone AS MATERIALIZED (
  SELECT name FROM daemons WHERE expires_at < clock_timestamp() - interval '14 days' FOR SHARE)
DELETE FROM owners
WHERE since < clock_timestamp() - interval '14 days'
  AND (daemon IS NULL OR daemon IN (SELECT name FROM gone)))sql",
    R"sql(
DELETE FROM daemons
WHERE expires_at < clock_timestamp() - interval '1 day'
  AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.daemon = daemons.name))sql",
    R"sql(
DELETE FROM daemon_starts
WHERE at < clock_timestamp() - interval '14 days'
  AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.incarnation = daemon_starts.incarnation)
  AND NOT EXISTS (
    SELECT 1 FROM daemons WHERE daemons.incarnation = daemon_starts.incarnation))sql"};

// Name, address, page, incarnation, secret, lease in microseconds; whether this start had the row;
// incarnation, twice.
inline constexpr char kRenewDaemon[] = R"sql(
WITH renewed AS (
  INSERT INTO daemons AS d (name, address, page, incarnation, secret, alive_since, expires_at)
  VALUES (?, ?, ?, ?, ?, clock_timestamp(), clock_timestamp() + ? * interval '1 microsecond')
  ON CONFLICT (name) DO UPDATE SET
    address = excluded.address,
    page = excluded.page,
    incarnation = excluded.incarnation,
    secret = excluded.secret,
    alive_since = CASE
      WHEN d.incarnation = excluded.incarnation AND d.expires_at > clock_timestamp()
      THEN d.alive_since ELSE clock_timestamp() END,
    expires_at = greatest(excluded.expires_at, CASE
      WHEN d.incarnation = excluded.incarnation THEN d.expires_at ELSE excluded.expires_at END)
  WHERE d.incarnation = excluded.incarnation
    OR d.expires_at <= clock_timestamp()
    OR (? = 0 AND d.address = excluded.address)
  RETURNING d.name),
kept AS (
  UPDATE owners SET incarnation = ?
  WHERE daemon IN (SELECT name FROM renewed) AND incarnation <> ?)
SELECT name FROM renewed)sql";

// Address and rest of the lease, in nanoseconds, of the daemon with this name.
inline constexpr char kDaemonOfName[] = R"sql(
SELECT d.address, (extract(epoch FROM d.expires_at - clock_timestamp()) * 1000000)::bigint * 1000
FROM daemons AS d WHERE d.name = ?)sql";

inline constexpr char kLivingDaemons[] = R"sql(
SELECT d.name, d.address, d.page, d.incarnation, d.secret,
  (extract(epoch FROM d.expires_at - clock_timestamp()) * 1000000)::bigint * 1000,
  (extract(epoch FROM d.alive_since) * 1000000)::bigint * 1000
FROM daemons AS d WHERE d.expires_at > clock_timestamp() ORDER BY d.name)sql";

// Jobs; name and incarnation, four times.
inline constexpr char kClaimFree[] = R"sql(
WITH wanted AS (
  SELECT tenant, job, n FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS w (tenant, job, n)),
me AS MATERIALIZED (
  SELECT d.name FROM daemons AS d
  WHERE d.name = ? AND d.incarnation = ? AND d.expires_at > clock_timestamp() FOR SHARE),
ended AS MATERIALIZED (
  SELECT d.name FROM daemons AS d
  WHERE NOT (d.expires_at > clock_timestamp())
    AND d.name IN (SELECT o.daemon FROM owners AS o JOIN wanted USING (tenant, job))
  ORDER BY d.name FOR SHARE),
unowned AS (
  SELECT DISTINCT w.tenant, w.job FROM wanted AS w
  WHERE NOT EXISTS (
    SELECT 1 FROM owners AS o JOIN daemons AS d ON d.name = o.daemon
    WHERE o.tenant = w.tenant AND o.job = w.job AND d.expires_at > clock_timestamp()
      AND (o.daemon <> ? OR o.incarnation = ?))
  ORDER BY w.tenant, w.job)
INSERT INTO owners AS o (tenant, job, daemon, incarnation, token, since)
SELECT unowned.tenant, unowned.job, ?, ?, nextval('owner_tokens'), clock_timestamp()
FROM unowned
WHERE (SELECT count(*) FROM me) = 1 AND (SELECT count(*) FROM ended) >= 0
ON CONFLICT (tenant, job) DO UPDATE SET
  daemon = excluded.daemon,
  incarnation = excluded.incarnation,
  token = CASE WHEN o.daemon = excluded.daemon THEN o.token ELSE nextval('owner_tokens') END,
  since = CASE WHEN o.daemon = excluded.daemon THEN o.since ELSE clock_timestamp() END,
  wanted_by = CASE WHEN o.daemon = excluded.daemon THEN o.wanted_by END
WHERE o.daemon IS NULL OR o.daemon = excluded.daemon OR o.daemon IN (SELECT name FROM ended))sql";

// Jobs; name and incarnation of this daemon.
inline constexpr char kOwnersOfWanted[] = R"sql(
WITH wanted AS (
  SELECT tenant, job, n FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS w (tenant, job, n))
SELECT w.n, o.daemon, d.address, o.token,
  CASE WHEN o.daemon = ? AND o.incarnation = ? THEN 1 ELSE 0 END,
  (extract(epoch FROM d.expires_at - clock_timestamp()) * 1000000)::bigint * 1000,
  CASE WHEN o.wanted_by = o.daemon THEN 1 ELSE 0 END
FROM wanted AS w JOIN owners AS o USING (tenant, job) JOIN daemons AS d ON d.name = o.daemon
WHERE d.expires_at > clock_timestamp())sql";

inline constexpr char kOwnedByDaemon[] =
    "SELECT tenant, job, token FROM owners WHERE daemon = ? AND incarnation = ?";

inline constexpr char kAllOwners[] = R"sql(
SELECT o.tenant, o.job, o.daemon, d.address, o.token,
  (extract(epoch FROM d.expires_at - clock_timestamp()) * 1000000)::bigint * 1000
FROM owners AS o JOIN daemons AS d ON d.name = o.daemon
WHERE d.expires_at > clock_timestamp())sql";

inline constexpr char kNowUs[] = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

// Jobs; name and incarnation.
inline constexpr char kSettleJobs[] = R"sql(
WITH wanted AS (
  SELECT tenant, job, n FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS w (tenant, job, n))
UPDATE owners AS o SET since = clock_timestamp() FROM wanted AS w
WHERE o.tenant = w.tenant AND o.job = w.job AND o.daemon = ? AND o.incarnation = ?)sql";

// To: name and incarnation; the job; from: name, incarnation, token; owned before, in microseconds;
// to, again.
inline constexpr char kHandOverJob[] = R"sql(
UPDATE owners AS o SET
  daemon = ?, incarnation = ?, token = nextval('owner_tokens'), since = clock_timestamp()
WHERE tenant = ? AND job = ? AND daemon = ? AND incarnation = ? AND token = ?
  AND (extract(epoch FROM o.since) * 1000000)::bigint <= ?
  AND EXISTS (
    SELECT 1 FROM daemons AS d
    WHERE d.name = ? AND d.incarnation = ? AND d.expires_at > clock_timestamp()))sql";

// Jobs; this daemon's name, twice.
inline constexpr char kWantJobs[] = R"sql(
WITH wanted AS (
  SELECT tenant, job, n FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS w (tenant, job, n))
UPDATE owners AS o SET wanted_by = ?, wanted_at = clock_timestamp() FROM wanted AS w
WHERE o.tenant = w.tenant AND o.job = w.job AND o.daemon <> ?)sql";

inline constexpr char kJobsThatOthersWant[] = R"sql(
SELECT o.tenant, o.job, o.wanted_by FROM owners AS o JOIN daemons AS d ON d.name = o.daemon
WHERE o.daemon = ? AND o.incarnation = ? AND o.wanted_by <> o.daemon
  AND o.wanted_at > clock_timestamp() - interval '5 seconds'
  AND o.wanted_at > greatest(o.since, d.alive_since) + interval '4 seconds')sql";

// Jobs; name, incarnation; owned before, in microseconds.
inline constexpr char kReleaseJobs[] = R"sql(
WITH wanted AS (
  SELECT tenant, job, n FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS w (tenant, job, n))
UPDATE owners AS o SET daemon = NULL, since = clock_timestamp() FROM wanted AS w
WHERE o.tenant = w.tenant AND o.job = w.job AND o.daemon = ? AND o.incarnation = ?
  AND (extract(epoch FROM o.since) * 1000000)::bigint <= ?)sql";

inline constexpr char kLeaveFleet[] = R"sql(
UPDATE daemons SET expires_at = least(expires_at, clock_timestamp())
WHERE name = ? AND incarnation = ?)sql";

}  // namespace rollcall
