// SPDX-License-Identifier: Apache-2.0
// The stacks that an incident has requested and that have not come: how long its first report waits
// for them, and what the report notes where they are lacking. Pure; one owner, no lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "daemon/agents/stack_request.h"
#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class Incident;
}  // namespace v1

class AwaitedStacks {
 public:
  void Add(const StackRequest& request, int64_t now_ns);
  // Call it also for a reply without a stack.
  void Remove(const StackResult& result);
  // Takes from the state when the agents that owe stacks were last heard.
  void Hear(const JobState& state);

  bool empty() const { return open_ <= 0; }
  // Whether those of a culprit or a waiting rank are lacking.
  bool OwesListed() const { return !owed_.empty(); }
  // Whether a report waits for the stacks of the newest request. It waits kStacksWithinNs for
  // any agent, and kLateStacksWithinNs for an agent that still reports: its host is busy.
  bool MayComeSoon(int64_t now_ns) const;
  // Says in the root verdict of which ranks no stack has come. Removes its earlier notes.
  void Explain(int64_t now_ns, v1::Incident* incident) const;

  static constexpr int64_t kStacksWithinNs = 2'000'000'000;
  // Less than the patience of `rollcall run` with a report (cli/run/incident_watch.cc).
  static constexpr int64_t kLateStacksWithinNs = 4'000'000'000;

 private:
  struct Owed {
    int32_t rank = -1;
    std::string agent;  // its id
  };
  using ProcessId = std::pair<std::string, int32_t>;  // host and pid

  std::map<ProcessId, Owed> owed_;  // of processes that the incident lists
  int open_ = 0;                    // also of those that it does not list
  int64_t requested_ns_ = 0;        // time of the newest request
  int64_t heard_ns_ = 0;            // newest tick of an agent that owes stacks
};

}  // namespace rollcall
