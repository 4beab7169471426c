// SPDX-License-Identifier: Apache-2.0
// The library whose calls a communicator has. For the library, the agent, the rules and the
// reports.
#pragma once

#include <cstdint>

namespace rollcall {

// The numbers are those in segments and on the wire.
enum class CommKind : uint8_t {
  kNccl = 0,   // and MPI
  kGloo = 1,   // PyTorch's: its calls go on while the program does other work
  kStore = 2,  // a key of PyTorch's stores and the ranks of the job: only the rules make such ones
  kHccl = 3,
  kOneCcl = 4,
  kUcc = 5,  // its calls go on while a thread tests them
  kNvshmem = 6,
  kOneCclEvents = 7,  // of oneCCL's C++ interface: its calls go on as gloo's do
};
inline constexpr uint32_t kCommKinds = 8;

// Whether a thread that has begun a group groups the kind's calls, too.
constexpr bool HasGroups(CommKind kind) {
  return kind == CommKind::kNccl || kind == CommKind::kHccl || kind == CommKind::kOneCcl;
}

// Whether the kind's calls may go to a stream of a GPU, for which the host then waits. Some of
// NVSHMEM's wait on the host.
constexpr bool IsLikeNccl(CommKind kind) { return HasGroups(kind) || kind == CommKind::kNvshmem; }

// Whether the kind's communicators have ids that the library counts or makes of names. Another
// start of the program has the same ones.
constexpr bool HasCountedIds(CommKind kind) {
  return kind == CommKind::kGloo || kind == CommKind::kUcc || kind == CommKind::kNvshmem;
}

// Whether a call that stands keeps the later calls of its rank on other communicators from going
// on: one device, or the thread that made it, runs them in order.
constexpr bool HoldsUpOtherCalls(CommKind kind) {
  return kind != CommKind::kGloo && kind != CommKind::kUcc && kind != CommKind::kOneCclEvents &&
         kind != CommKind::kStore;
}

// Whether the kind's collectives only begin an operation, which goes on when a thread tests it.
constexpr bool CallsReturnEarly(CommKind kind) { return kind == CommKind::kUcc; }

// The library's name where it is not NCCL or MPI, whose calls have names of their own; else "".
constexpr const char* CommKindName(CommKind kind) {
  switch (kind) {
    case CommKind::kGloo:
      return "gloo";
    case CommKind::kStore:
      return "store";
    case CommKind::kHccl:
      return "hccl";
    case CommKind::kOneCcl:
    case CommKind::kOneCclEvents:
      return "oneccl";
    case CommKind::kUcc:
      return "ucc";
    case CommKind::kNvshmem:
      return "nvshmem";
    case CommKind::kNccl:
      break;
  }
  return "";
}

// kNccl: not known, from a newer library.
constexpr CommKind ToCommKind(uint32_t number) {
  return number < kCommKinds ? static_cast<CommKind>(number) : CommKind::kNccl;
}

}  // namespace rollcall
