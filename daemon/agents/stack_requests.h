// SPDX-License-Identifier: Apache-2.0
// The stack requests that agents have not replied to in full, numbered by one counter.
//
// Only StackDesk uses it. Thread-safe; its mutex comes last in the lock order, and no other part is
// called under it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "daemon/access/agent_name.h"
#include "daemon/agents/stack_request.h"

namespace rollcall {

class StackRequests {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Limit of open requests without a reader. A new one removes the oldest.
  static constexpr size_t kKept = 200;

  struct Opened {
    uint64_t number = 0;
    bool has_removed = false;  // the oldest one
  };

  // Adds a request; returns its number.
  Opened Open(const StackRequest& request);
  // Adds a request with a reader, which calls Next() until nullopt, or Drop().
  uint64_t OpenForReader(const StackRequest& request);

  // Adds this agent's reply to the request. Returns the result; nullopt if it goes to a reader, if
  // the request has no such process of this agent, or if the agent has replied before.
  std::optional<StackResult> AddReply(uint64_t number, const AgentName& agent,
                                      v1::ProcessStack stack);

  // Ends the request for the processes of these agents, which are not connected, with the error
  // `why`. Returns the results that do not go to a reader.
  std::vector<StackResult> Fail(uint64_t number, const std::set<std::string>& agents,
                                const std::string& why);

  // Waits for the next stack. After the deadline, returns each missing one with an error. Removes
  // the request and returns nullopt when the reader has all of them.
  std::optional<v1::ProcessStack> Next(uint64_t number, Deadline deadline);

  void Drop(uint64_t number);

  // Readers get the stacks that have come and stop waiting, now and later: the daemon stops.
  void Close();

 private:
  using Key = std::tuple<std::string, int32_t, std::string>;  // host, pid, agent
  struct Entry {
    StackPurpose purpose;
    bool has_reader = false;
    std::map<Key, RequestedProcess> open;
    std::deque<v1::ProcessStack> ready;  // for the reader
  };
  using Entries = std::map<uint64_t, Entry>;

  uint64_t Add(const StackRequest& request, bool has_reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<StackResult> Finish(const RequestedProcess& process, v1::ProcessStack stack,
                                    bool is_reply, Entry* entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveIfDone(Entries::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Condition wake_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unread_ ABSL_GUARDED_BY(mutex_) = 0;  // requests without a reader
  Entries entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
