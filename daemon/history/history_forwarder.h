// SPDX-License-Identifier: Apache-2.0
// Brings what waits in the spool (history_spool.h) to the database, in order, on a thread of its
// own.
//
// While the database is away the thread tries again after growing pauses, in which chance has a
// part, so that many daemons do not come back at once. It logs once that the database is away, and
// once that it is back. A write that the database refuses for good is logged, counted as lost and
// left out, so that it holds back no other. So is one about a job that another daemon has had
// since, and that counts apart: the other daemon's data is newer. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/backoff.h"
#include "base/worker.h"
#include "daemon/history/history_spool.h"
#include "daemon/history/postgres_options.h"

namespace rollcall {

struct HistoryForwarderOptions {
  PostgresOptions database;
  std::string known_as;  // the database and this daemon, as the spool remembers them
  HistoryLimits limits;
  Backoff retry{1'000'000'000, 30'000'000'000, 0.5, 1};
};

class HistoryForwarder {
 public:
  struct Counts {
    bool is_connected = false;
    uint64_t failed = 0;   // failed attempts to connect or to write
    uint64_t refused = 0;  // writes that the database refused for good
    uint64_t fenced = 0;   // dropped, because another daemon has had their job since
  };
  // What the database had when the forwarder first had brought it up to date.
  using Loaded = std::function<void(Continuation)>;
  using Numbers = std::function<void(const std::map<JobId, int>&)>;

  // The callbacks run on the forwarder's thread, `numbers` with each new connection.
  HistoryForwarder(HistoryForwarderOptions options, Loaded loaded, Numbers numbers);
  ~HistoryForwarder();
  HistoryForwarder(const HistoryForwarder&) = delete;
  HistoryForwarder& operator=(const HistoryForwarder&) = delete;

  // Returns the name for messages, without a password.
  std::string name() const;

  // From now on brings the writes of this spool. `must_load`: call `loaded` as soon as the database
  // has all of them.
  void SetSpool(std::shared_ptr<HistorySpool> spool, bool must_load);
  // The spool has something new.
  void Wake();

  // Returns the outcome of the first attempt, or kUnavailable after this time.
  absl::Status AwaitFirstAttempt(std::chrono::nanoseconds patience) const;

  using Use = HistoryUse;  // that for questions gives the server more time
  // nullptr if the database is away.
  std::shared_ptr<const History> reader(Use use) const;
  // A read failed: this connection is not used again.
  void DropReader(const History* failed);

  Counts counts() const;

  // Brings what it can until then, and ends. The rest stays in the spool.
  void Finish(SteadyTime deadline);

 private:
  struct Core;
  const std::shared_ptr<Core> core_;
  Worker thread_;
};

}  // namespace rollcall
