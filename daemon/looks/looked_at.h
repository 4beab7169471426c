// SPDX-License-Identifier: Apache-2.0
// A process among those that looks at several hosts show.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rollcall/v1/look.pb.h"

namespace rollcall {

// ProcessLook::found_by of a rank that has ended and was not collected.
inline constexpr char kFoundAsZombie[] = "zombie";

// A process, by the index of its look and its own index in that look.
struct LookedAt {
  size_t look = 0;
  int process = 0;
  bool operator==(const LookedAt& other) const {
    return look == other.look && process == other.process;
  }
};

// Whether a stack could be taken, at least in part.
inline bool HasFrames(const v1::ProcessStack& stack) {
  return std::any_of(stack.threads().begin(), stack.threads().end(),
                     [](const v1::ThreadStack& thread) { return !thread.frames().empty(); });
}

inline const v1::ProcessLook& ProcessAt(const std::vector<v1::HostLook>& looks,
                                        const LookedAt& at) {
  return looks[at.look].processes(at.process);
}

}  // namespace rollcall
