// SPDX-License-Identifier: Apache-2.0
// The book of all requests for stacks that agents have not answered in full, under one counter.
//
// For StackDesk only. Thread-safe; its mutex is taken last, and nobody else is called under it.
// It waits by the steady clock, which nobody can set: absl::Mutex waits by the wall clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/server/agent_name.h"
#include "daemon/server/stack_request.h"

namespace rollcall {

class StackRequests {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Of requests that nobody reads, the newest are kept; older ones are not answered any more.
  static constexpr size_t kKept = 200;

  // Enters a request; returns its number.
  uint64_t Open(const StackRequest& request);
  // Enters one whose answers are for a reader, who calls Next() until that is over, or Drop().
  uint64_t OpenForReader(const StackRequest& request);

  // What this agent sent in answer to the request. Nothing where it is for a reader, or where the
  // request did not ask this agent for it, or has its answer.
  std::optional<StackAnswer> Answer(uint64_t number, const AgentName& agent,
                                    v1::ProcessStack stack);

  // These agents cannot be asked: their processes are answered with that error. Returns what is not
  // for a reader.
  std::vector<StackAnswer> GiveUp(uint64_t number, const std::set<std::string>& agents,
                                  const std::string& why);

  // The next that came; at the deadline those that did not, with an error. nullopt: all are out,
  // and the request is forgotten.
  std::optional<v1::ProcessStack> Next(uint64_t number, Deadline deadline);

  void Drop(uint64_t number);

  // Readers get what has come and wait for nothing more, from now on: the daemon stops.
  void Close();

 private:
  using Key = std::tuple<std::string, int32_t, std::string>;  // host, pid, agent
  struct Entry {
    std::string job;
    std::string incident;
    bool is_rest = false;
    bool has_reader = false;
    std::map<Key, AskedProcess> open;
    std::deque<v1::ProcessStack> came;  // for the reader
  };
  using Entries = std::map<uint64_t, Entry>;

  // These want mutex_ held.
  uint64_t Add(const StackRequest& request, bool has_reader);
  void DropOldest();
  std::optional<StackAnswer> Settle(const AskedProcess& process, v1::ProcessStack stack,
                                    bool has_come, Entry* entry);
  void ForgetIfDone(Entries::iterator at);

  std::mutex mutex_;  // guards all below
  std::condition_variable came_;
  bool is_closed_ = false;
  uint64_t last_number_ = 0;
  size_t unread_ = 0;  // entries without a reader
  Entries entries_;
};

}  // namespace rollcall
