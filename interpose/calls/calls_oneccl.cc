// SPDX-License-Identifier: Apache-2.0
// The wrappers of oneCCL's C interface.
#include "interpose/calls/observe_group.h"
#include "interpose/calls/observe_life.h"

namespace rollcall {
namespace {

constexpr int kOneCclAvg = 4;  // the last operator that is not of one communicator alone

uint8_t OneCclDtype(int type) { return static_cast<uint8_t>(type); }

uint8_t OneCclReduction(int reduction) {
  const bool is_known = reduction >= 0 && reduction <= kOneCclAvg;
  return is_known ? static_cast<uint8_t>(reduction) : kDynamicReduction;
}

uint32_t AskOneCcl(const char* symbol, void* handle) {
  const auto query = reinterpret_cast<int (*)(void*, int*)>(FindRealByName(symbol));
  int value = -1;
  return static_cast<uint32_t>(query != nullptr && query(handle, &value) == 0 ? value : -1);
}

void LearnOneCclRank(const LocalComm* comm, void* handle) {
  comm->entry->rank.store(AskOneCcl("onecclCommUserRank", handle), std::memory_order_relaxed);
  comm->entry->size.store(AskOneCcl("onecclCommCount", handle), std::memory_order_relaxed);
}

NewComm FromOneCclId(const onecclUniqueId& id, size_t ranks, int rank) {
  return FromIdHash(segment::HashBytes(&id, sizeof(id)), static_cast<int>(ranks), rank);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the rows use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

#define ENQUEUED ROLLCALL_ENQUEUED
#include "interpose/oneccl_calls.def"

EXPORT int onecclGroupStart() { return ObserveGroupStart(ROLLCALL_REAL(onecclGroupStart)); }

EXPORT int onecclGroupEnd() {
  return ObserveGroupEnd(ROLLCALL_REAL(onecclGroupEnd), Op::kGroupEnd, true);
}

EXPORT int onecclCommInitRank(void** comm, size_t ranks, onecclUniqueId id, int rank) {
  auto* real = ROLLCALL_REAL(onecclCommInitRank);
  if (real == nullptr) return ncclSystemError;
  if (!IsOwnCreation()) return real(comm, ranks, id, rank);
  return ObserveNewComm(real, CommKind::kOneCcl, Op::kCommInitRank, FromOneCclId(id, ranks, rank),
                        comm, &LearnNothing, comm, ranks, id, rank);
}

EXPORT int onecclCommInitRankConfig(void** comm, size_t ranks, onecclUniqueId id, int rank,
                                    const void* config) {
  auto* real = ROLLCALL_REAL(onecclCommInitRankConfig);
  if (real == nullptr) return ncclSystemError;
  if (!IsOwnCreation()) return real(comm, ranks, id, rank, config);
  return ObserveNewComm(real, CommKind::kOneCcl, Op::kCommInitRankConfig,
                        FromOneCclId(id, ranks, rank), comm, &LearnNothing, comm, ranks, id, rank,
                        config);
}

EXPORT int onecclCommSplit(void* comm, int color, int key, void** created, void* config) {
  auto* real = ROLLCALL_REAL(onecclCommSplit);
  if (real == nullptr) return ncclSystemError;
  NewComm what;
  if (!IsOwnCreation() ||
      !FromParent(static_cast<ncclComm_t>(comm), segment::kSplit, nullptr, &what)) {
    return real(comm, color, key, created, config);
  }
  what.id = segment::Mix(what.split_id, static_cast<uint32_t>(color));
  return ObserveNewComm(real, CommKind::kOneCcl, Op::kCommSplit, what, created, &LearnOneCclRank,
                        comm, color, key, created, config);
}

EXPORT int onecclCommDestroy(void* comm) {
  return ObserveEndOfComm(ROLLCALL_REAL(onecclCommDestroy), Op::kCommDestroy, comm);
}
