// People's requests for stacks, while the answers of agents come in one by one. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

class StackCalls {
 public:
  using Process = std::pair<std::string, int32_t>;  // host, pid

  // `ranks`: of the processes that are asked. `request` must be new.
  void Begin(uint64_t request, std::map<Process, int32_t> ranks);

  // False if nobody has asked for it.
  bool Deliver(uint64_t request, const v1::ProcessStack& stack);

  // The agent of these processes cannot be asked.
  void GiveUp(uint64_t request, const std::vector<Process>& processes, const std::string& why);

  // By a clock that nobody can set.
  using Deadline = std::chrono::steady_clock::time_point;

  // The next that came; at the deadline those that did not, with an error. nullopt: all are out,
  // and the request is forgotten.
  std::optional<v1::ProcessStack> Next(uint64_t request, Deadline deadline);

  void End(uint64_t request);

  // Nobody waits any more, from now on: the daemon stops.
  void Close();

 private:
  struct Call {
    std::map<Process, int32_t> open;
    std::deque<v1::ProcessStack> came;
  };

  // All below.
  std::mutex mutex_;
  std::condition_variable came_;
  bool closed_ = false;
  std::map<uint64_t, Call> calls_;
};

}  // namespace rollcall
