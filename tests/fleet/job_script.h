// SPDX-License-Identifier: Apache-2.0
// What each rank of one simulated job has done at a given time. Pure: no clock, no state.
//
// All ranks make the same calls at a fixed rate, each up to 2 ms after the first one, and a call
// finishes half a period later. A job may hang at one position of the communicator of all ranks:
// one rank never enters that call, or makes another one.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall::fleet {

enum class Fault {
  kNone,
  kAbsent,    // the culprit does not enter the call
  kMismatch,  // the culprit makes another call
};

// Times in nanoseconds of the steady clock; 0 if never.
struct JobPlan {
  std::string name;
  int ranks = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // the last calls finish before it, then the processes exit normally
  int64_t period_ns = 0;
  Fault fault = Fault::kNone;
  int64_t fault_ns = 0;  // the first call due then or later is the one that hangs
  int culprit = -1;
};

// Of a rank on one communicator.
struct Standing {
  uint64_t entered = 0;
  uint64_t finished = 0;
  int64_t waiting_since_ns = 0;
};

inline bool operator==(const Standing& a, const Standing& b) {
  return a.entered == b.entered && a.finished == b.finished &&
         a.waiting_since_ns == b.waiting_since_ns;
}

class JobScript {
 public:
  explicit JobScript(JobPlan plan);

  const JobPlan& plan() const { return plan_; }
  bool HasEnded(int64_t now_ns) const { return plan_.end_ns != 0 && now_ns >= plan_.end_ns; }

  // `world`: on the communicator of all ranks; else on any other one.
  Standing At(int rank, bool world, int64_t now_ns) const;
  int64_t EnteredNs(int rank, uint64_t position) const;
  // The rank's call at that position of the world is the one that contradicts the others.
  bool IsOtherCall(int rank, bool world, uint64_t position) const;

  // When the first rank begins to wait for good. The job has a fault.
  int64_t HangsFromNs() const;

 private:
  uint64_t EnteredBy(int rank, int64_t now_ns) const;
  uint64_t FinishedBy(int64_t now_ns) const;
  // Calls that the rank enters on such a communicator in its life.
  uint64_t MostEntered(int rank, bool world) const;

  JobPlan plan_;
  uint64_t last_;  // all calls below this position finish
};

}  // namespace rollcall::fleet
