// SPDX-License-Identifier: Apache-2.0
// The times and limits of a daemon among several. Plain values.
//
// tests/unit/daemon/fleet/fleet_test.cc holds them to the promise that the jobs of a dead daemon
// have another one within ten seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/monotonic_clock.h"
#include "daemon/history/history.h"
#include "daemon/history/postgres_options.h"

namespace rollcall {

struct FleetOptions {
  PostgresOptions database;
  HistoryLimits limits;
  int64_t step_ns = 100'000'000;  // from one look at what is to be done to the next
  int64_t lease_ns = 6'000'000'000;
  int64_t margin_ns = 1'000'000'000;  // for clocks that go at different speeds
  int64_t renew_every_ns = 2'000'000'000;
  int64_t try_again_ns = 500'000'000;  // to renew or to claim, while the database does not answer
  // The database must have been silent for this long before the daemon takes jobs without it.
  int64_t patience_ns = 3'000'000'000;
  // How long a daemon must be there before others give it its share of jobs.
  int64_t settled_after_ns = 30'000'000'000;
  int64_t share_every_ns = 5'000'000'000;     // from one look for jobs to hand over to the next
  int64_t writes_within_ns = 3'000'000'000;   // of a job that comes back, or leaves
  int64_t forget_others_ns = 60'000'000'000;  // jobs of other daemons, for which no agent asks
  int64_t ask_again_ns = 1'000'000'000;       // who owns a job of another daemon
  int64_t owners_every_ns = 2'000'000'000;    // from one look at the owners of all jobs to the next
  // Agents must ask for a job of another daemon for so long before this one asks that daemon for
  // it.
  int64_t want_after_ns = 2'000'000'000;
  size_t most_jobs = 100'000;  // that agents have reported here, also those of other daemons
  std::string alone_file;      // remembers whether there were other daemons; empty if nothing does
  std::function<int64_t()> now_ns = BootNs;  // counts also while the host is suspended
};

}  // namespace rollcall
