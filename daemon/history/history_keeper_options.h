// SPDX-License-Identifier: Apache-2.0
// How the keeper of the history (history_keeper.h) keeps it. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/backoff.h"
#include "daemon/history/history.h"
#include "daemon/history/postgres_options.h"

namespace rollcall {

struct HistoryKeeperOptions {
  std::string path;          // database file; "" keeps incidents in memory
  bool is_optional = false;  // start without the file if it is unusable, and retry
  HistoryLimits limits;
  PostgresOptions database;  // for several daemons; without a URL the file is all
  // Returns the token by which this daemon owns the job now; 0 or less if it cannot know. Each
  // write about a job carries the token of the moment in which the keeper got it, and the database
  // refuses what is out of date. Quick, from any thread. Empty if no other daemon has these jobs.
  std::function<int64_t(const JobId&)> token_of;
  // Whether another daemon may have the job, as far as this one sees. Then its writes wait in
  // memory until ReleaseHeld() or DropHeld(). Quick, from any thread. Empty means never.
  std::function<bool(const JobId&)> is_unproven;
  Backoff retry{1'000'000'000, 60'000'000'000};
  size_t most_waiting = 500;   // limit of unsaved incidents; each may have megabytes of stacks
  size_t most_notes = 20'000;  // limit of unsaved alerts, receipts and lists of hosts
};

}  // namespace rollcall
