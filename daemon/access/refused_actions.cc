// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/refused_actions.h"

#include <iterator>

namespace rollcall {

std::optional<uint64_t> RefusedActions::Take(const std::string& who, const std::string& action,
                                             int64_t now_ns) {
  const MutexLock lock(mutex_);
  const bool is_new = told_.count({who, action}) == 0;
  if (is_new && told_.size() >= kMost) DropOld(now_ns);
  if (is_new && told_.size() >= kMost) return std::nullopt;
  return told_[{who, action}].Take(now_ns);
}

void RefusedActions::DropOld(int64_t now_ns) {
  for (auto at = told_.begin(); at != told_.end();) {
    at = at->second.IsClosed(now_ns) ? std::next(at) : told_.erase(at);
  }
}

}  // namespace rollcall
