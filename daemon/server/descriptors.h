// SPDX-License-Identifier: Apache-2.0
// File descriptors, so that there is one left for a report when connections have used up the rest.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <vector>

namespace rollcall {

// Lets this process open as many files as the hard limit allows, up to 2^20. Returns the soft limit as it was.
rlim_t RaiseDescriptorLimit();

// Holds some descriptors that can be given up in need. Not thread-safe.
class SpareDescriptors {
 public:
  explicit SpareDescriptors(size_t count) : count_(count) { Take(); }
  ~SpareDescriptors() { Release(); }
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

  void Release();
  // As many as there were, or as there are.
  void Take();

 private:
  const size_t count_;
  std::vector<int> held_;
};

}  // namespace rollcall
