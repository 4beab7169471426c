// SPDX-License-Identifier: Apache-2.0
// The wrappers of HCCL's calls, and of the waits for a stream of Ascend's runtime.
#include <stdlib.h>
#include <string.h>

#include "interpose/calls/observe_group.h"
#include "interpose/calls/observe_life.h"
#include "interpose/record/creations.h"

namespace rollcall {
namespace {

// The types of HCCL (HcclDataType) in NCCL's numbers, or in PyTorch's where NCCL has none.
uint8_t HcclDtype(int type) {
  constexpr uint8_t kDtypes[] = {ncclInt8,
                                 kTorchDtypes + kTorchInt16,
                                 ncclInt32,
                                 ncclFloat16,
                                 ncclFloat32,
                                 ncclInt64,
                                 ncclUint64,
                                 ncclUint8,
                                 kTorchDtypes + kTorchUint16,
                                 ncclUint32,
                                 ncclFloat64,
                                 ncclBfloat16};
  const bool is_known = type >= 0 && type < static_cast<int>(sizeof(kDtypes));
  return is_known ? kDtypes[type] : kNoDtype;
}

// Sum, product, maximum and minimum have NCCL's numbers.
uint8_t HcclReduction(int reduction) { return static_cast<uint8_t>(reduction); }

// The name in a configuration (HcclCommConfig), whose first word is its size, or nullptr.
constexpr size_t kNameAt = 32, kNameBytes = 128;
const char* HcclName(const void* config) {
  size_t size = 0;
  if (config != nullptr) memcpy(&size, config, sizeof(size));
  const char* name = static_cast<const char*>(config) + kNameAt;
  return size < kNameAt + kNameBytes || name[0] == '\0' ? nullptr : name;
}

NewComm FromRootInfo(const HcclRootInfo* id, uint32_t ranks, uint32_t rank, const void* config) {
  const uint64_t hash = segment::HashBytes(id, sizeof(*id));
  NewComm what = FromIdHash(hash, static_cast<int>(ranks), static_cast<int>(rank));
  what.name = HcclName(config);
  return what;
}

// All ranks have the same file, maybe in another place each. Its number of ranks is in the
// environment, too.
NewComm FromClusterFile(uint32_t rank, const void* config) {
  constexpr uint64_t kCluster = 0x6863636c636c7573;
  const char* ranks = getenv("RANK_SIZE");
  NewComm what = FromIdHash(kCluster, ranks == nullptr ? 0 : atoi(ranks), static_cast<int>(rank));
  what.name = HcclName(config);
  return what;
}

// Only the members of a part of `parent` see it: they name its ranks, and it has a number.
bool FromRanks(void* const* parent, uint32_t ranks, const uint32_t* ids, uint64_t number,
               uint32_t rank, NewComm* what) {
  const LocalComm* known = parent == nullptr || ids == nullptr ? nullptr : FindComm(*parent);
  if (known == nullptr) return false;
  uint64_t hash = segment::Mix(Get(known->entry->id), number);
  for (uint32_t i = 0; i < ranks; ++i) hash = segment::Mix(hash, ids[i]);
  *what = FromIdHash(hash, static_cast<int>(ranks), static_cast<int>(rank));
  return true;
}

void LearnHcclSize(const LocalComm* comm, void* handle) {
  const auto query = reinterpret_cast<int (*)(void*, uint32_t*)>(FindRealByName("HcclGetRankSize"));
  uint32_t size = 0;
  if (query != nullptr && query(handle, &size) == 0) {
    comm->entry->size.store(size, std::memory_order_relaxed);
  }
}

// A communicator whose ranks are all in this process is known by the process, and by its number.
uint64_t OwnId() {
  static std::atomic<uint32_t> made{0};
  const segment::SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  const uint64_t process =
      segment::Mix(segment::HashBytes(header->host, sizeof(header->host)), header->start_time);
  return segment::Mix(segment::Mix(process, static_cast<uint32_t>(header->pid)), ++made);
}

constexpr uint32_t kMostRanks = 64;  // of a process, one for each device

int RecordInitAll(decltype(&HcclCommInitAll) real, uint32_t ranks, int32_t* devices, void** all) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const uint64_t id = OwnId();
  LocalComm* comms[kMostRanks] = {};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    comms[rank] = AddComm(FromIdHash(id, static_cast<int>(ranks), static_cast<int>(rank)));
    if (comms[rank] == nullptr) continue;
    comms[rank]->entry->kind.store(static_cast<uint32_t>(CommKind::kHccl),
                                   std::memory_order_relaxed);
  }
  const Blocked blocked(thread, Op::kCommInitAll, comms[0], nullptr, Now());
  const int result = real(ranks, devices, all);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (comms[rank] == nullptr) continue;
    RecordAnswer(comms[rank], result == 0 ? all[rank] : nullptr, result);
  }
  return result;
}

int HcclDoesNothing() { return 0; }

// One message of a batch, inside a group.
void RecordMessage(const HcclSendRecvItem& item, void* comm, void* stream, const void* caller) {
  const CallInfo info = {item.type == 0 ? Op::kSend : Op::kRecv,
                         HcclDtype(item.data_type),
                         kNoReduction,
                         static_cast<int32_t>(item.remote_rank),
                         item.count,
                         static_cast<cudaStream_t>(stream)};
  ObserveCall(&HcclDoesNothing, static_cast<ncclComm_t>(comm), info, caller);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the rows use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

#define ENQUEUED ROLLCALL_ENQUEUED
#include "interpose/hccl_calls.def"

EXPORT int HcclGroupStart() { return ObserveGroupStart(ROLLCALL_REAL(HcclGroupStart)); }

EXPORT int HcclGroupEnd() {
  return ObserveGroupEnd(ROLLCALL_REAL(HcclGroupEnd), Op::kGroupEnd, true);
}

// All messages of a batch go on at once, as those of a group do.
EXPORT int HcclBatchSendRecv(HcclSendRecvItem* items, uint32_t count, void* comm, void* stream) {
  auto* real = ROLLCALL_REAL(HcclBatchSendRecv);
  if (real == nullptr) return ncclSystemError;
  if (this_thread.inside || !Recording() || items == nullptr) {
    return real(items, count, comm, stream);
  }
  ObserveGroupStart(&HcclDoesNothing);
  for (uint32_t i = 0; i < count; ++i) {
    RecordMessage(items[i], comm, stream, __builtin_return_address(0));
  }
  return ObserveGroupEnd(real, Op::kGroupEnd, true, items, count, comm, stream);
}

EXPORT int HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* id, uint32_t rank,
                                void** comm) {
  auto* real = ROLLCALL_REAL(HcclCommInitRootInfo);
  if (real == nullptr) return ncclSystemError;
  if (!IsOwnCreation() || id == nullptr) return real(ranks, id, rank, comm);
  return ObserveNewComm(real, CommKind::kHccl, Op::kCommInitRank,
                        FromRootInfo(id, ranks, rank, nullptr), comm, &LearnNothing, ranks, id,
                        rank, comm);
}

EXPORT int HcclCommInitRootInfoConfig(uint32_t ranks, const HcclRootInfo* id, uint32_t rank,
                                      const void* config, void** comm) {
  auto* real = ROLLCALL_REAL(HcclCommInitRootInfoConfig);
  if (real == nullptr) return ncclSystemError;
  if (!IsOwnCreation() || id == nullptr) return real(ranks, id, rank, config, comm);
  return ObserveNewComm(real, CommKind::kHccl, Op::kCommInitRankConfig,
                        FromRootInfo(id, ranks, rank, config), comm, &LearnNothing, ranks, id, rank,
                        config, comm);
}

EXPORT int HcclCommInitClusterInfo(const char* file, uint32_t rank, void** comm) {
  auto* real = ROLLCALL_REAL(HcclCommInitClusterInfo);
  if (real == nullptr) return ncclSystemError;
  if (!IsOwnCreation()) return real(file, rank, comm);
  return ObserveNewComm(real, CommKind::kHccl, Op::kCommInitRank, FromClusterFile(rank, nullptr),
                        comm, &LearnHcclSize, file, rank, comm);
}

EXPORT int HcclCommInitClusterInfoConfig(const char* file, uint32_t rank, void* config,
                                         void** comm) {
  auto* real = ROLLCALL_REAL(HcclCommInitClusterInfoConfig);
  if (real == nullptr) return ncclSystemError;
  if (!IsOwnCreation()) return real(file, rank, config, comm);
  return ObserveNewComm(real, CommKind::kHccl, Op::kCommInitRankConfig,
                        FromClusterFile(rank, config), comm, &LearnHcclSize, file, rank, config,
                        comm);
}

EXPORT int HcclCommInitAll(uint32_t ranks, int32_t* devices, void** comms) {
  auto* real = ROLLCALL_REAL(HcclCommInitAll);
  if (real == nullptr) return ncclSystemError;
  const bool is_recorded = IsOwnCreation() && ranks > 0 && ranks <= kMostRanks && comms != nullptr;
  return is_recorded ? RecordInitAll(real, ranks, devices, comms) : real(ranks, devices, comms);
}

EXPORT int HcclCreateSubCommConfig(void** comm, uint32_t ranks, uint32_t* ids, uint64_t number,
                                   uint32_t rank, void* config, void** created) {
  auto* real = ROLLCALL_REAL(HcclCreateSubCommConfig);
  if (real == nullptr) return ncclSystemError;
  NewComm what;
  if (!IsOwnCreation() || !FromRanks(comm, ranks, ids, number, rank, &what)) {
    return real(comm, ranks, ids, number, rank, config, created);
  }
  what.name = HcclName(config);
  return ObserveNewComm(real, CommKind::kHccl, Op::kCommSplit, what, created, &LearnNothing, comm,
                        ranks, ids, number, rank, config, created);
}

EXPORT int HcclCommDestroy(void* comm) {
  return ObserveEndOfComm(ROLLCALL_REAL(HcclCommDestroy), Op::kCommDestroy, comm);
}

EXPORT int aclrtSynchronizeStream(void* stream) {
  return ObserveWait(ROLLCALL_REAL(aclrtSynchronizeStream), Op::kaclrtSynchronizeStream, stream,
                     stream);
}

EXPORT int aclrtSynchronizeStreamWithTimeout(void* stream, int32_t milliseconds) {
  return ObserveWait(ROLLCALL_REAL(aclrtSynchronizeStreamWithTimeout), Op::kaclrtSynchronizeStream,
                     stream, stream, milliseconds);
}

EXPORT int aclrtSynchronizeEvent(void* event) {
  return ObserveWait(ROLLCALL_REAL(aclrtSynchronizeEvent), Op::kaclrtSynchronizeEvent, nullptr,
                     event);
}

EXPORT int aclrtSynchronizeDevice() {
  return ObserveWait(ROLLCALL_REAL(aclrtSynchronizeDevice), Op::kaclrtSynchronizeDevice, nullptr);
}
