// SPDX-License-Identifier: Apache-2.0
// Results of work in threads of its own, if the work ends in time: it may hang in a call to an
// unreachable file server.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/worker.h"

namespace rollcall {

template <typename Result>
class ResultInTime {
 public:
  // Begins the work, which must own, or share, all that it uses.
  explicit ResultInTime(std::function<Result()> work) {
    worker_.Post([result = result_, work = std::move(work)] { *result = work(); });
  }
  // Leaves the thread behind if the work has not ended.
  ~ResultInTime() { worker_.Finish(SteadyTime()); }

  // nullopt if the work has not ended by `deadline`, and goes on, or if the system refused a thread
  // for it. Call it once.
  std::optional<Result> Take(SteadyTime deadline) {
    if (!worker_.Finish(deadline)) return std::nullopt;
    return std::move(*result_);
  }

 private:
  const std::shared_ptr<std::optional<Result>> result_ = std::make_shared<std::optional<Result>>();
  Worker worker_;
};

// Does all of `run` at the same time. nullopt if that one has not ended by `until`, and goes on.
template <typename Result>
std::vector<std::optional<Result>> AllAtOnce(std::vector<std::function<Result()>> run,
                                             SteadyTime until) {
  std::deque<ResultInTime<Result>> begun;
  for (std::function<Result()>& one : run) begun.emplace_back(std::move(one));
  std::vector<std::optional<Result>> results;
  for (ResultInTime<Result>& one : begun) results.push_back(one.Take(until));
  return results;
}

}  // namespace rollcall
