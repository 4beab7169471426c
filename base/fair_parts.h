// SPDX-License-Identifier: Apache-2.0
// Shares out a limit among takers that come one after the other: each may have an equal part of one
// half, whatever the others take, and what is left of the other half. So a few that need much get
// it, and every user gets some.
//
//   FairParts bytes(limit, threads.size());
//   const size_t room = bytes.most();   // for this thread
//   bytes.Take(used);                   // at most `room`
//
// Pure, not thread-safe. All takers together never get more than the limit, even if there are more
// of them than the caller announced.
#pragma once

#include <algorithm>
#include <cstddef>

namespace rollcall {

class FairParts {
 public:
  FairParts(size_t limit, size_t takers)
      : each_(limit / 2 / std::max<size_t>(takers, 1)), common_(limit - limit / 2), left_(limit) {}

  size_t most() const { return std::min(each_ + common_, left_); }
  void Take(size_t taken) {
    common_ -= std::min(common_, taken > each_ ? taken - each_ : 0);
    left_ -= std::min(left_, taken);
  }

 private:
  size_t each_;
  size_t common_;
  size_t left_;
};

}  // namespace rollcall
