// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/refused_actions.h"

#include <iterator>

namespace rollcall {

std::optional<uint64_t> RefusedActions::Take(const std::string& who, const std::string& action,
                                             int64_t now_ns) {
  const MutexLock lock(mutex_);
  const auto known = told_.find({who, action});
  if (known != told_.end()) {
    Told& told = known->second;
    if (now_ns - told.at_ns < kEveryNs) {
      ++told.left_out;
      return std::nullopt;
    }
    told.at_ns = now_ns;
    return std::exchange(told.left_out, 0);
  }
  if (told_.size() >= kMost) DropOld(now_ns);
  if (told_.size() >= kMost) return std::nullopt;
  told_[{who, action}].at_ns = now_ns;
  return 0;
}

void RefusedActions::DropOld(int64_t now_ns) {
  for (auto at = told_.begin(); at != told_.end();) {
    at = now_ns - at->second.at_ns >= kEveryNs ? told_.erase(at) : std::next(at);
  }
}

}  // namespace rollcall
