// SPDX-License-Identifier: Apache-2.0
// Does the same with several things at the same time, and waits for a limited time only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/loose_thread.h"
#include "base/loose_threads.h"
#include "base/mutex.h"

namespace rollcall {

// The result of each of `run`; nullopt: it has not ended by `until`, and goes on. Each of `run` owns, or
// shares, all that it uses.
template <typename Result>
std::vector<std::optional<Result>> AllAtOnce(std::vector<std::function<Result()>> run,
                                             SteadyTime until) {
  struct Shared {
    Mutex mutex;
    Condition wake;
    std::vector<std::optional<Result>> results ABSL_GUARDED_BY(mutex);
    size_t missing ABSL_GUARDED_BY(mutex) = 0;
  };
  const auto shared = std::make_shared<Shared>();
  {
    const MutexLock lock(shared->mutex);
    shared->results.resize(run.size());
    shared->missing = run.size();
  }
  for (size_t i = 0; i < run.size(); ++i) {
    std::thread([shared, i, one = std::move(run[i]), mark = std::make_unique<LooseThreadMark>()] {
      Result result = one();
      const MutexLock lock(shared->mutex);
      shared->results[i] = std::move(result);
      --shared->missing;
      shared->wake.NotifyAll();
    }).detach();
  }
  const MutexLock lock(shared->mutex);
  while (shared->missing > 0 && shared->wake.WaitUntil(shared->mutex, until)) {
  }
  std::vector<std::optional<Result>> results;
  for (std::optional<Result>& result : shared->results) results.push_back(std::move(result));
  return results;
}

}  // namespace rollcall
