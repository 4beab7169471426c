// People's requests for stacks, while the answers of agents come in one by one. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

class StackCalls {
 public:
  using Process = std::pair<std::string, int32_t>;  // host, pid

  // `ranks`: of the processes that are asked. `request` must be new.
  void Begin(uint64_t request, std::map<Process, int32_t> ranks);

  // False if nobody has asked for it.
  bool Deliver(uint64_t request, const v1::ProcessStack& stack);

  // The host's agent cannot be asked.
  void GiveUp(uint64_t request, const std::string& host, const std::string& why);

  // The next that came; at the deadline those that did not, with an error. nullopt: all are out,
  // and the request is forgotten.
  std::optional<v1::ProcessStack> Next(uint64_t request, absl::Time deadline);

  void End(uint64_t request);

  // Nobody waits any more, from now on: the daemon stops.
  void Close();

 private:
  struct Call {
    std::map<Process, int32_t> open;
    std::deque<v1::ProcessStack> came;
  };

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
