// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/members/shrunk.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "interpose/child_ids.h"

namespace rollcall {
namespace {

constexpr uint32_t kMostChildren = 64;  // of a parent: splits and shrinks
constexpr size_t kMostTries = 4096;
constexpr size_t kMostChosen = 4;  // ranks; larger sets need more tries than there are

class Search {
 public:
  Search(const Communicator& comm, std::vector<int32_t> unjoined)
      : comm_(comm), unjoined_(std::move(unjoined)) {
    for (uint32_t n = 1; n <= kMostChildren; ++n) {
      shrinks_.push_back(segment::ChildId(comm.parent, segment::kShrink, n));
    }
    for (const int32_t rank : unjoined_) all_ += segment::ExclusionTerm(rank);
  }

  // Few are late, or few are excluded. Small sets come first.
  std::optional<ShrunkRanks> Run() {
    for (size_t count = 0; count <= kMostChosen && count <= unjoined_.size(); ++count) {
      chosen_.clear();
      if (Choose(0, count, 0)) return Found();
    }
    return std::nullopt;
  }

 private:
  // Tries all sets that add `count` ranks, from this index on, to the chosen ones. `sum`: of those.
  bool Choose(size_t from, size_t count, uint64_t sum) {
    if (count == 0) return Try(sum);
    for (size_t i = from; i + count <= unjoined_.size() && tries_ < kMostTries; ++i) {
      chosen_.push_back(unjoined_[i]);
      if (Choose(i + 1, count - 1, sum + segment::ExclusionTerm(unjoined_[i]))) return true;
      chosen_.pop_back();
    }
    return false;
  }

  bool Try(uint64_t sum) {
    ++tries_;
    for (const uint64_t shrink : shrinks_) {
      chosen_are_late_ = segment::ShrunkId(shrink, all_ - sum) == comm_.id;
      if (chosen_are_late_ || segment::ShrunkId(shrink, sum) == comm_.id) return true;
    }
    return false;
  }

  ShrunkRanks Found() const {
    const std::set<int32_t> chosen(chosen_.begin(), chosen_.end());
    std::vector<int32_t> rest;
    for (const int32_t rank : unjoined_) {
      if (chosen.count(rank) == 0) rest.push_back(rank);
    }
    ShrunkRanks found;
    (chosen_are_late_ ? found.late : found.excluded) = RankRanges(chosen_);
    (chosen_are_late_ ? found.excluded : found.late) = RankRanges(std::move(rest));
    return found;
  }

  const Communicator& comm_;
  const std::vector<int32_t> unjoined_;
  std::vector<uint64_t> shrinks_;  // the ids of the parent's shrinks without the excluded ranks
  uint64_t all_ = 0;
  std::vector<int32_t> chosen_;
  bool chosen_are_late_ = false;  // false: they are excluded
  size_t tries_ = 0;
};

}  // namespace

std::optional<ShrunkRanks> FindExcluded(const Communicator& comm, const RankRanges& unjoined) {
  if (comm.parent == 0 || unjoined.size() > kMostTries) return std::nullopt;
  return Search(comm, unjoined.First(unjoined.size())).Run();
}

}  // namespace rollcall
