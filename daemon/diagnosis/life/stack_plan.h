// SPDX-License-Identifier: Apache-2.0
// Which processes of a job an incident asks for their stacks, in which order and when. Pure: time
// and state are arguments. One owner, no lock.
//
// All results are indices into JobState::processes, each once, without ended processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

class StackPlan {
 public:
  // Processes of the first and of later portions; the stacks of a portion take about 20 MB, from a
  // few dozen hosts.
  static constexpr size_t kPortion = 256;
  // Processes whose stacks an incident merges and does not list.
  static constexpr size_t kMostOfRest = 4096;
  // Transfers without stacks are small, and are read from shared memory.
  static constexpr size_t kTransfersPortion = 1024;
  static constexpr size_t kMostTransfers = 32768;

  // When an incident opens: the culprits first, or a sample of them if there are very many; then
  // some that wait. What it asks for later is relative to these.
  std::vector<int32_t> First(const JobState& state, const std::vector<Verdict>& verdicts,
                             int64_t now_ns);
  // When the verdicts have changed: the processes that matter now and had no turn.
  std::vector<int32_t> New(const JobState& state, const std::vector<Verdict>& verdicts,
                           int64_t now_ns);
  // Those of First() and New() once more, when a second sample is due: between the two these
  // processes move, or not. Empty if none is due.
  std::vector<int32_t> Again(const JobState& state, const std::vector<Verdict>& verdicts,
                             int64_t now_ns, const Limits& limits);
  // The next portion of the others, at most one each second: of a call that stands still in flight
  // the members first, then a sample that is spread evenly over the job. Empty if none is due.
  std::vector<int32_t> Rest(const JobState& state, int64_t now_ns);
  // The next portion of the members of such a call that get no turn in Rest(), for their transfers
  // over the network only. Empty if none is due.
  std::vector<int32_t> Transfers(const JobState& state, int64_t now_ns);

 private:
  std::vector<int32_t> NextMembers(const JobState& state);
  std::set<int32_t> AddStalled(const JobState& state, const std::vector<Verdict>& verdicts);

  int64_t taken_ns_ = 0;  // the last sample of First(), New() or Again(); 0: no second one is due
  int64_t apart_ns_ = 0;  // until the next one; 0 means the shortest time
  std::vector<int32_t> taken_;         // by First() and New()
  std::set<int32_t> has_turn_;         // the same processes
  std::set<uint64_t> stalled_;         // communicators, whose members have been added
  std::deque<int32_t> members_;        // of these, which Rest() is to return first
  std::deque<int32_t> for_transfers_;  // of these, which Transfers() is to return
  std::set<int32_t> has_transfers_;    // those that were in either
  size_t rest_next_ = 0;               // the first process of the next portion
  int64_t rest_next_ns_ = 0, transfers_next_ns_ = 0;  // when the next portions are due
};

}  // namespace rollcall
