// SPDX-License-Identifier: Apache-2.0
// The history, kept by threads of its own: one writes, one reads. Nobody else waits for SQLite or
// the disk longer than he says.
//
// Of each incident only the newest state waits to be saved. What cannot be saved (a full disk, a
// locked or missing file) is tried again after 1 s, then later and later, until it can be. A file
// that turns out to be damaged is put aside; one that was removed is begun anew. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/server/loose_thread.h"
#include "daemon/store/history.h"

namespace rollcall {

struct HistoryKeeperOptions {
  std::string path;          // "" keeps incidents in memory
  bool is_optional = false;  // to be tried again, where the file cannot be used at the start
  HistoryLimits limits;
  int64_t first_pause_ns = 1'000'000'000;
  int64_t longest_pause_ns = 60'000'000'000;
  size_t most_waiting = 500;  // incidents; each may have megabytes of stacks
};

class HistoryKeeper {
 public:
  struct Counts {
    uint64_t failed = 0;   // tries to save
    uint64_t lost = 0;     // states of incidents given up
    uint64_t waiting = 0;  // now
  };

  explicit HistoryKeeper(HistoryKeeperOptions options);
  ~HistoryKeeper();
  HistoryKeeper(const HistoryKeeper&) = delete;
  HistoryKeeper& operator=(const HistoryKeeper&) = delete;

  // kUnavailable: the file cannot be used, and is not optional. Says why.
  absl::Status Start();

  // The highest n of the job's "<job>-<n>", saved or not; 0: none is known.
  int LastNumber(const std::string& job) const;

  void Save(v1::Incident incident);

  // True once after a new file was begun: what was saved before should be saved again.
  bool TakeBegunAnew();

  // Newest first. `live`: what the caller knows better than the history. kUnavailable: the history
  // did not answer in time, or cannot be read.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request,
                                                 const std::vector<v1::Incident>& live) const;
  // nullopt: not found, or no answer in time.
  std::optional<v1::Incident> Get(const std::string& id) const;

  Counts counts() const;

  // Saves what waits, and ends the threads. What is not saved by then is lost, and logged.
  void Finish(SteadyTime deadline);

 private:
  struct Core;
  const std::shared_ptr<Core> core_;
  LooseThread writer_, reader_;
};

}  // namespace rollcall
