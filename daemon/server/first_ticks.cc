// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/first_ticks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rollcall {

void FirstTicks::Gone(const std::string& id) {
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), id), waiting_.end());
  turns_.erase(id);
}

std::vector<std::string> FirstTicks::Next(int64_t now_ns) {
  if (waiting_.empty()) return {};
  for (auto at = turns_.begin(); at != turns_.end();) {
    at = at->second <= now_ns ? turns_.erase(at) : std::next(at);
  }
  std::vector<std::string> next;
  while (!waiting_.empty() && turns_.size() < at_once_) {
    next.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    turns_[next.back()] = now_ns + kTurnNs;
  }
  return next;
}

}  // namespace rollcall
