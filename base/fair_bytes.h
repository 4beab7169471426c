// SPDX-License-Identifier: Apache-2.0
// Memory that many share, as long as there is some: who has most is refused more. Only what is
// large counts; its callers let small things pass.
//
// While all have less than `most` together, each may have what it wants. From then on, each may
// have an equal part of it. So all together have less than twice as much. Thread-safe.
#pragma once

#include <cstddef>
#include <map>

#include "base/mutex.h"

namespace rollcall {

template <typename Owner>
class FairBytes {
 public:
  explicit FairBytes(size_t most) : most_(most) {}

  // False, and nothing is added: there is no room for these bytes of this owner.
  bool Add(const Owner& owner, size_t bytes) {
    const MutexLock lock(mutex_);
    const auto known = owners_.find(owner);
    const size_t own = (known == owners_.end() ? 0 : known->second) + bytes;
    const size_t owners = owners_.size() + (known == owners_.end() ? 1 : 0);
    if (all_ + bytes > most_ && own > most_ / owners) return false;
    owners_[owner] = own;
    all_ += bytes;
    return true;
  }

  // Total of what was added.
  void Remove(const Owner& owner, size_t bytes) {
    const MutexLock lock(mutex_);
    const auto known = owners_.find(owner);
    if (known == owners_.end()) return;
    all_ -= bytes;
    known->second -= bytes;
    if (known->second == 0) owners_.erase(known);
  }

  size_t all() const {
    const MutexLock lock(mutex_);
    return all_;
  }

 private:
  const size_t most_;
  mutable Mutex mutex_;
  std::map<Owner, size_t> owners_ ABSL_GUARDED_BY(mutex_);  // who has some
  size_t all_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
