// SPDX-License-Identifier: Apache-2.0
// Writes reports on its own threads, so that a slow, full or dead disk delays no other thread.
//
// Only the newest state of each incident waits. The queue retries a failed write after 1 s, then
// after growing pauses, until it succeeds; the report then notes how late it is. The queue logs and
// counts every loss: see Counts and Finish(). A second thread waits until the reports are on the
// disk (SyncReport()), so that a busy disk delays no report. At its start the queue removes what
// killed writers have left over; at its start and once an hour it deletes old reports. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/worker.h"
#include "daemon/incidents/old_reports.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

struct ReportQueueOptions {
  std::string report_dir;
  Backoff retry{1'000'000'000, 60'000'000'000};
  int64_t late_after_ns = 5'000'000'000;  // a report after this delay notes it
  size_t most_waiting = 200;  // limit of waiting incidents; each may have megabytes of stacks
  ReportLimits keep;
  // An earlier daemon may have been killed after it wrote a report and before it saved the path.
  // Then the queue updates that report.
  bool continues_reports = false;
  int64_t delete_every_ns = 3600'000'000'000;
};

class ReportQueue {
 public:
  struct Result {
    JobKey job;
    std::string incident;
    std::string folder;  // empty if the queue gave up
    std::string note;    // how late the report is, or why there is none; empty if on time
  };
  struct Counts {
    uint64_t written = 0;  // created or updated
    uint64_t failed = 0;   // failed attempts
    uint64_t lost = 0;     // incidents dropped
    uint64_t waiting = 0;  // waiting now
    uint64_t deleted = 0;  // old reports
  };

  explicit ReportQueue(ReportQueueOptions options);
  // Calls Finish() with a deadline of one second.
  ~ReportQueue();
  ReportQueue(const ReportQueue&) = delete;
  ReportQueue& operator=(const ReportQueue&) = delete;

  // `folder` is that of the incident's report; "" while there is none.
  void Put(v1::Incident incident, const std::string& folder);

  // Returns the reports that were written or given up since the last call, and removes them from
  // the queue.
  std::vector<Result> DrainResults();

  // Returns why the incident has no report, once its state has waited for `patience_ns`. Returns ""
  // before that, and if nothing waits.
  std::string FindProblem(const std::string& incident, int64_t patience_ns) const;

  Counts counts() const;

  // Gives each waiting report one more attempt, and ends the threads. Reports that are unwritten at
  // `deadline` are lost and logged. A report that has its name is not lost, also if the disk is
  // still busy with it: the kernel goes on without this process. Call it once.
  void Finish(SteadyTime deadline);

 private:
  struct Core;
  const std::shared_ptr<Core> core_;
  Worker writer_;
  Worker syncer_;
};

}  // namespace rollcall
