// SPDX-License-Identifier: Apache-2.0
// Does the same with several things at the same time, and waits for a limited time only.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/loose_thread.h"
#include "base/loose_threads.h"

namespace rollcall {

// The result of each of `run`; nullopt: it has not ended by `until`, and goes on. Each of `run` owns, or
// shares, all that it uses.
template <typename Result>
std::vector<std::optional<Result>> AllAtOnce(std::vector<std::function<Result()>> run,
                                             SteadyTime until) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::optional<Result>> results;
    size_t missing = 0;
  };
  const auto shared = std::make_shared<Shared>();
  shared->results.resize(run.size());
  shared->missing = run.size();
  for (size_t i = 0; i < run.size(); ++i) {
    std::thread([shared, i, one = std::move(run[i]), mark = std::make_unique<LooseThreadMark>()] {
      Result result = one();
      const std::lock_guard<std::mutex> lock(shared->mutex);
      shared->results[i] = std::move(result);
      --shared->missing;
      shared->wake.notify_all();
    }).detach();
  }
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->wake.wait_until(lock, until, [&shared] { return shared->missing == 0; });
  std::vector<std::optional<Result>> results;
  for (std::optional<Result>& result : shared->results) results.push_back(std::move(result));
  return results;
}

}  // namespace rollcall
