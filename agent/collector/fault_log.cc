// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/fault_log.h"

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr size_t kShareOfLog = 3;  // times what is left for others

}  // namespace

bool FaultLog::HasRoom(int64_t user) const {
  const auto own = of_user_.find(user);
  const size_t left = kMost - said_.size();
  return left > 0 && (own == of_user_.end() || own->second < kShareOfLog * left);
}

void FaultLog::Add(const std::string& text, int64_t user) {
  if (!HasRoom(user) || !said_.insert(text).second) return;
  ++of_user_[user];
  news_.push_back(text);
}

void FaultLog::AddOf(ProcessId process, const std::string& text, int64_t user) {
  std::set<std::string>& own = of_process_[process];
  if (own.size() >= kMostOfProcess || !own.insert(text).second) return;
  const bool is_last = own.size() == kMostOfProcess;
  Add(is_last ? absl::StrCat(text, " (further faults of this segment are not logged)") : text,
      user);
}

}  // namespace rollcall
