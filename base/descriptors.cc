// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.h"

#include <fcntl.h>

#include <algorithm>

namespace rollcall {
namespace {

constexpr rlim_t kMostNeeded = 1 << 20;  // some systems allow a thousand times as many

}  // namespace

rlim_t RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::max(before, std::min(limit.rlim_max, kMostNeeded));
  // If this fails, the daemon serves fewer connections.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

size_t DescriptorLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

void SpareDescriptors::Take() {
  while (held_.size() < count_) {
    UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return;
    held_.push_back(std::move(fd));
  }
}

}  // namespace rollcall
