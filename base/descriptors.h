// SPDX-License-Identifier: Apache-2.0
// File descriptors in reserve, so that a report can be written when connections have used up the
// rest.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <vector>

#include "base/unique_fd.h"

namespace rollcall {

// Lets this process open as many files as the hard limit allows, up to 2^20. Returns the soft limit
// from before.
rlim_t RaiseDescriptorLimit();

// How many files this process may have open.
size_t DescriptorLimit();

// Holds some descriptors that the owner can release when none is free. Not thread-safe.
class SpareDescriptors {
 public:
  explicit SpareDescriptors(size_t count) : count_(count) { Take(); }

  void Release() { held_.clear(); }
  // Takes as many descriptors as Release() gave up, or as many as are free.
  void Take();

 private:
  const size_t count_;
  std::vector<UniqueFd> held_;
};

}  // namespace rollcall
