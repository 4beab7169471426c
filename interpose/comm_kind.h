// SPDX-License-Identifier: Apache-2.0
// The library whose calls a communicator has. For the library, the agent, the rules and the
// reports.
#pragma once

#include <cstdint>

namespace rollcall {

// The numbers are those in segments and on the wire.
enum class CommKind : uint8_t {
  kNccl = 0,   // and MPI
  kGloo = 1,   // PyTorch's
  kStore = 2,  // a key of PyTorch's stores and the ranks of the job: only the rules make such ones
  kHccl = 3,
  kOneCcl = 4,  // of its C interface
  kUcc = 5,
  kNvshmem = 6,
  kOneCclEvents = 7,  // of its C++ interface
};

namespace comm_kinds {

// What holds of a kind's calls.
enum Trait : uint32_t {
  kGrouped = 1,     // a thread that has begun a group groups them, too
  kOnStreams = 2,   // may go to a stream of a GPU, for which the host then waits
  kCountedIds = 4,  // the library counts or makes the ids of names: another start has the same
  kInOrder = 8,     // one that stands keeps the rank's later calls on other communicators
  kGoOnByThemselves = 16,  // threads of the library's own move them on
  kReturnEarly = 32,       // they only begin an operation, which goes on while a thread tests it
};

struct Row {
  const char* name;  // "": the calls have names of their own
  uint32_t traits;
};

// The one table of kinds, by number. Reports tell kinds of one name not apart.
inline constexpr Row kRows[] = {
    {"", kGrouped | kOnStreams | kInOrder},
    {"gloo", kCountedIds | kGoOnByThemselves},
    {"store", 0},
    {"hccl", kGrouped | kOnStreams | kInOrder},
    {"oneccl", kGrouped | kOnStreams | kInOrder},
    {"ucc", kCountedIds | kReturnEarly},
    {"nvshmem", kOnStreams | kCountedIds | kInOrder},
    {"oneccl", kGoOnByThemselves},
};

constexpr const Row& RowOf(CommKind kind) { return kRows[static_cast<uint32_t>(kind)]; }
constexpr bool Have(CommKind kind, Trait trait) { return (RowOf(kind).traits & trait) != 0; }

}  // namespace comm_kinds

inline constexpr uint32_t kCommKinds = sizeof(comm_kinds::kRows) / sizeof(comm_kinds::kRows[0]);

// Whether a thread that has begun a group groups the kind's calls, too.
constexpr bool HasGroups(CommKind kind) { return comm_kinds::Have(kind, comm_kinds::kGrouped); }

// Whether the kind's calls may go to a stream of a GPU, for which the host then waits. Some of
// NVSHMEM's wait on the host.
constexpr bool IsLikeNccl(CommKind kind) { return comm_kinds::Have(kind, comm_kinds::kOnStreams); }

// Whether the kind's communicators have ids that the library counts or makes of names. Another
// start of the program has the same ones.
constexpr bool HasCountedIds(CommKind kind) {
  return comm_kinds::Have(kind, comm_kinds::kCountedIds);
}

// Whether a call that stands keeps the later calls of its rank on other communicators from going
// on: one device, or the thread that made it, runs them in order.
constexpr bool HoldsUpOtherCalls(CommKind kind) {
  return comm_kinds::Have(kind, comm_kinds::kInOrder);
}

// Whether the library moves the kind's calls on in threads of its own, while the program does other
// work or waits. What these threads use of the CPU is no work of the program.
constexpr bool GoOnByThemselves(CommKind kind) {
  return comm_kinds::Have(kind, comm_kinds::kGoOnByThemselves);
}

// Whether the kind's collectives only begin an operation, which goes on when a thread tests it.
constexpr bool CallsReturnEarly(CommKind kind) {
  return comm_kinds::Have(kind, comm_kinds::kReturnEarly);
}

// The library's name where it is not NCCL or MPI, whose calls have names of their own; else "".
constexpr const char* CommKindName(CommKind kind) { return comm_kinds::RowOf(kind).name; }

// kNccl: not known, from a newer library.
constexpr CommKind ToCommKind(uint32_t number) {
  return number < kCommKinds ? static_cast<CommKind>(number) : CommKind::kNccl;
}

}  // namespace rollcall
