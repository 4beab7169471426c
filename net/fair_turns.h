// SPDX-License-Identifier: Apache-2.0
// A queue of work for several threads that many people fill: who fills it most waits longest.
//
//   FairTurns<Task> turns(threads);
//   turns.Add("10.0.0.7", task);
//   while (auto turn = turns.Take()) { Run(turn->item); turns.End(turn->owner); }
//
// The next item is of the owner with the fewest that run now, and among those of the one whose
// first item waits longest. One owner never has all of four or more threads, so that another one's
// item begins at once. Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace rollcall {

template <typename Item>
class FairTurns {
 public:
  struct Turn {
    std::string owner;
    Item item;
  };

  explicit FairTurns(size_t threads) : most_of_one_(std::max<size_t>(threads - threads / 4, 1)) {}

  void Add(const std::string& owner, Item item) {
    owners_[owner].waiting.emplace_back(next_++, std::move(item));
  }

  // nullopt if nothing waits, or only items of owners who have their threads. Each turn needs its
  // End(), and after it another Take().
  std::optional<Turn> Take() {
    const auto next = std::min_element(
        owners_.begin(), owners_.end(),
        [this](const auto& a, const auto& b) { return PlaceOf(a.second) < PlaceOf(b.second); });
    if (next == owners_.end() || !MayRun(next->second)) return std::nullopt;
    Queue& queue = next->second;
    Turn turn{next->first, std::move(queue.waiting.front().second)};
    queue.waiting.pop_front();
    ++queue.running;
    return turn;
  }

  void End(const std::string& owner) {
    const auto queue = owners_.find(owner);
    --queue->second.running;
    if (queue->second.running == 0 && queue->second.waiting.empty()) owners_.erase(queue);
  }

  // Forgets what waits.
  void Clear() {
    for (auto& [owner, queue] : owners_) queue.waiting.clear();
  }

 private:
  struct Queue {
    size_t running = 0;
    std::deque<std::pair<uint64_t, Item>> waiting;  // with their numbers
  };

  bool MayRun(const Queue& queue) const {
    return !queue.waiting.empty() && queue.running < most_of_one_;
  }
  // A task that may not run comes last.
  std::pair<size_t, uint64_t> PlaceOf(const Queue& queue) const {
    if (!MayRun(queue)) return {SIZE_MAX, UINT64_MAX};
    return {queue.running, queue.waiting.front().first};
  }

  const size_t most_of_one_;
  uint64_t next_ = 0;
  std::map<std::string, Queue> owners_;
};

}  // namespace rollcall
