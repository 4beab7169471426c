// SPDX-License-Identifier: Apache-2.0
// What happened during a load, counted. Safe to call from all threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/fleet/fleet_plan.h"

namespace rollcall::fleet {

class Tally {
 public:
  Tally(int hosts, int64_t begin_ns) : hosts_(hosts), begin_ns_(begin_ns) {}

  // A host has a stream, and its whole tick has been taken. `lost_ns`: since when it had none.
  void HostIsBack(int64_t lost_ns, int64_t now_ns);
  void HostIsGone(int64_t now_ns);

  // The other side ended a stream that had been welcomed.
  void StreamClosed(const std::string& why);
  void AttemptFailed(const std::string& why);
  void StreamCut();  // by the host itself

  void TickSent();
  void TickDelayed();             // the message before it had not been taken when it was due
  void WokenLate(int64_t by_ns);  // this program itself was late
  void StackSent();

  // A line for people.
  std::string Progress(int64_t now_ns) const;
  // All figures as one line of JSON.
  std::string Json(const FleetPlan& plan) const;

 private:
  const int hosts_;
  const int64_t begin_ns_;
  mutable absl::Mutex mutex_;
  int connected_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t all_first_ns_ ABSL_GUARDED_BY(mutex_) = 0;     // all hosts were connected then, first
  int64_t cut_ns_ ABSL_GUARDED_BY(mutex_) = 0;           // since when some host has been gone
  std::vector<double> outages_ ABSL_GUARDED_BY(mutex_);  // of one host each, seconds
  // from the first loss to all back, seconds
  std::vector<double> all_back_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> reasons_ ABSL_GUARDED_BY(mutex_);
  int64_t opened_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t closed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cut_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t delayed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t stacks_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t latest_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall::fleet
