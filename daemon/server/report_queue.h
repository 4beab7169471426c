// SPDX-License-Identifier: Apache-2.0
// Writes reports on a thread of its own, so that a slow, full or dead disk holds up nobody.
//
// Of each incident only the newest state waits to be written. What cannot be written is tried again
// after 1 s, then later and later, until it can be; the report then says how late it is. Nothing is
// dropped silently: see Counts and Finish(). Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/server/loose_thread.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

struct ReportQueueOptions {
  std::string report_dir;
  int64_t first_pause_ns = 1'000'000'000;
  int64_t longest_pause_ns = 60'000'000'000;
  size_t most_waiting = 200;  // incidents; each may have megabytes of stacks
};

class ReportQueue {
 public:
  struct Written {
    std::string job, incident;
    std::string folder;  // "": it was given up
    std::string note;    // how late the report is, or why there is none; "": it is in time
  };
  struct Counts {
    uint64_t written = 0;  // brought up to date, too
    uint64_t failed = 0;   // tries
    uint64_t lost = 0;     // incidents given up
    uint64_t waiting = 0;  // now
  };

  explicit ReportQueue(ReportQueueOptions options);
  // Finish() within a second, unless that was called.
  ~ReportQueue();
  ReportQueue(const ReportQueue&) = delete;
  ReportQueue& operator=(const ReportQueue&) = delete;

  // `folder`: of its report, "" while there is none.
  void Put(v1::Incident incident, const std::string& folder);

  // What was written, or given up, since the last call.
  std::vector<Written> TakeWritten();

  // Why the incident has no report, once that has lasted `patience_ns`; "" before that, and when
  // there is nothing to write.
  std::string FindProblem(const std::string& incident, int64_t patience_ns) const;

  Counts counts() const;

  // Gives all that waits one more try, and ends the thread. What is not written by then is lost, and
  // logged. To be called once.
  void Finish(SteadyTime deadline);

 private:
  struct Core;
  const std::shared_ptr<Core> core_;
  LooseThread thread_;
};

}  // namespace rollcall
