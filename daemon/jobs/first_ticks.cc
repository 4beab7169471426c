// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/first_ticks.h"

#include <iterator>
#include <utility>

namespace rollcall {

void FirstTicks::Add(const std::string& id) {
  const uint64_t place = ++last_place_;
  waiting_[place] = id;
  places_[id].insert(place);
}

void FirstTicks::Gone(const std::string& id) {
  const auto places = places_.extract(id);
  if (!places.empty()) {
    for (const uint64_t place : places.mapped()) waiting_.erase(place);
  }
  turns_.erase(id);
}

std::vector<std::string> FirstTicks::Next(int64_t now_ns) {
  if (waiting_.empty()) return {};
  for (auto at = turns_.begin(); at != turns_.end();) {
    at = at->second <= now_ns ? turns_.erase(at) : std::next(at);
  }
  std::vector<std::string> next;
  while (!waiting_.empty() && turns_.size() < at_once_) {
    const auto first = waiting_.begin();
    const auto places = places_.find(first->second);
    places->second.erase(first->first);
    if (places->second.empty()) places_.erase(places);
    next.push_back(std::move(first->second));
    waiting_.erase(first);
    turns_[next.back()] = now_ns + kTurnNs;
  }
  return next;
}

}  // namespace rollcall
