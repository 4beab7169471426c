// SPDX-License-Identifier: Apache-2.0
// Asks the Flight Recorders of a job on this host, and reads the dumps that they write.
//
// A thread of its own asks and waits, for some seconds at most. It never blocks the job: it opens
// pipes without waiting for a reader, and PyTorch writes a dump beside the rank's work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/processes/spare_threads.h"
#include "base/mutex.h"
#include "cli/flight_recorder/dump_files.h"
#include "daemon/loop/recorder_source.h"

namespace rollcall {

class FlightRecorders : public RecorderSource {
 public:
  explicit FlightRecorders(std::string proc_root = "/proc") : proc_root_(std::move(proc_root)) {}
  ~FlightRecorders() override;  // ends its thread
  FlightRecorders(const FlightRecorders&) = delete;
  FlightRecorders& operator=(const FlightRecorders&) = delete;

  bool Ask(const JobState& job, const std::vector<int32_t>& processes) override;
  std::optional<RecorderAnswer> Answer(const JobState& job) override;

 private:
  // A rank whose recorder can be asked.
  struct Rank {
    int32_t rank = -1;
    int32_t pid = 0;
  };
  struct Dumps {
    std::vector<RankedDump> dumps;
    size_t ranks = 0;    // that were to be asked
    size_t asked = 0;    // of these, by a pipe that somebody reads
    int64_t now_ns = 0;  // since 1970, when the last dump was there
  };

  struct Asked;  // one that was asked
  using Deadline = std::chrono::steady_clock::time_point;

  void AskAll(const std::vector<Rank>& ranks);
  bool GoesOn(Deadline until) const;
  std::vector<Asked> AskEach(const std::vector<Rank>& ranks);
  bool LookAtEach(Deadline until, std::vector<Asked>* all);

  const std::string proc_root_;
  SpareThreads reads_;
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  std::optional<Dumps> dumps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
