// SPDX-License-Identifier: Apache-2.0
// Which processes of a job an incident asks for their stacks, and when: culprits and some waiting
// ranks first, again a moment later, then the rest in portions. Pure: time and state are arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// One incident has one. Processes are indices into JobState::processes, without ended ones.
class IncidentStacks {
 public:
  struct Due {
    std::optional<std::vector<int32_t>> again;  // the same processes as before
    std::vector<int32_t> rest;                  // the next portion of the others
  };

  // The processes to ask when the incident opens, culprits first.
  std::vector<int32_t> Open(const JobState& state, const std::vector<Verdict>& verdicts,
                            int64_t now_ns);

  // What is due now.
  Due Ask(const JobState& state, const std::vector<Verdict>& verdicts, int64_t now_ns,
          const Limits& limits);

  // The verdicts have changed: the processes to ask now, which had no reason before.
  std::vector<int32_t> Update(const JobState& state, const std::vector<Verdict>& verdicts,
                              int64_t now_ns);

 private:
  std::optional<std::vector<int32_t>> AskAgain(const JobState& state,
                                               const std::vector<Verdict>& verdicts, int64_t now_ns,
                                               const Limits& limits);
  std::set<int32_t> AddStalled(const JobState& state, const std::vector<Verdict>& verdicts);
  std::vector<int32_t> NextOfNetwork(const JobState& state);
  std::vector<int32_t> NextOfRest(const JobState& state);

  int64_t taken_ns_ = 0;           // 0 if there is no second sample to take
  int64_t apart_ns_ = 0;           // until the next one; 0 means the shortest
  std::vector<int32_t> asked_;     // in order
  std::set<int32_t> has_stacks_;   // the same processes
  std::set<uint64_t> stalled_;     // communicators, whose members were asked for their transfers
  std::deque<int32_t> network_;    // processes that are to be asked for them, before the rest
  std::set<int32_t> has_network_;  // those that were in network_
  size_t rest_next_ = 0;           // first process of the next portion
  int64_t rest_next_ns_ = 0;       // when the next portion is due
};

}  // namespace rollcall
