// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/parse_budget.h"

#include <utility>

namespace rollcall {

void ParseBudget::Take(size_t bytes, bool is_prompt, std::function<void()> parse) {
  if (bytes > kSmallBytes) {
    const MutexLock lock(mutex_);
    if (!NoneWaits() || !HasRoom(bytes)) {
      (is_prompt ? prompt_ : waiting_).push_back({bytes, std::move(parse)});
      return;
    }
    taken_ += bytes;
  }
  parse();
}

void ParseBudget::GiveBack(size_t bytes) {
  // A message may be applied inside its `parse`. The loop below continues with the next one then:
  // calls inside each other would grow the stack by the number of waiting messages.
  static thread_local bool is_parsing = false;
  if (bytes <= kSmallBytes) return;
  {
    const MutexLock lock(mutex_);
    taken_ -= bytes;
  }
  if (is_parsing) return;
  is_parsing = true;
  while (const std::function<void()> parse = Next()) parse();
  is_parsing = false;
}

// Empty if no tick waits, or there is no room.
std::function<void()> ParseBudget::Next() {
  const MutexLock lock(mutex_);
  std::deque<Waiting>* const first = prompt_.empty() ? &waiting_ : &prompt_;
  if (first->empty() || !HasRoom(first->front().bytes)) return nullptr;
  Waiting next = std::move(first->front());
  first->pop_front();
  taken_ += next.bytes;
  return std::move(next.parse);
}

}  // namespace rollcall
