// SPDX-License-Identifier: Apache-2.0
// Writes the record of one call, and moves the communicator's positions.
//
// The hot path: never allocates, locks, throws, makes a system call or changes errno. The thread
// that makes the call runs this code. NCCL allows one thread at a time on a communicator, so the
// words of a communicator have one writer and need no atomic addition. If a program breaks that
// rule, the words may be wrong; the daemon detects records that overlap, and reports
// concurrent_use.
#pragma once

#include <stddef.h>
#include <string.h>

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"
#include "interpose/ops.h"
#include "interpose/python/call_sites.h"
#include "interpose/recorder.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Forces inlining into each wrapper, where the operation is a constant. A call with all arguments,
// and a look-up of the operation's kind at run time, would take as long as writing the record.
#define ROLLCALL_HOT __attribute__((always_inline)) inline

struct CallInfo {
  Op op;
  uint8_t dtype;
  uint8_t reduction;
  int32_t peer;
  uint64_t count;
  cudaStream_t stream;
};

// What EndRecord() needs to complete, or to revert, what BeginRecord() changed.
struct OpenRecord {
  segment::RecordEntry* record;
  uint64_t signature;  // of the communicator, before the call
  bool p2p;
};

// The fields of a record besides the arguments of the call.
struct RecordOrigin {
  uint32_t thread;
  uint16_t group;
  uint8_t shape;
  uint8_t flags;    // segment::RecordFlags, without kRecordP2p
  uint64_t caller;  // from CallerWord()
};

inline uint64_t CallerWord(const void* caller) {
  return reinterpret_cast<uintptr_t>(caller) | CurrentSite() << segment::kSiteShift;
}

// Stores the fields from `peer` to `position` as two words, because each store adds to the cost of
// a record.
ROLLCALL_HOT void StoreArguments(segment::RecordEntry* record, const CallInfo& info,
                                 const RecordOrigin& origin, uint64_t position) {
  constexpr size_t kAt = offsetof(segment::RecordEntry, peer);
  static_assert(offsetof(segment::RecordEntry, group) == kAt + 4 &&
                offsetof(segment::RecordEntry, op) == kAt + 6 &&
                offsetof(segment::RecordEntry, dtype) == kAt + 7 &&
                offsetof(segment::RecordEntry, reduction) == kAt + 8 &&
                offsetof(segment::RecordEntry, result) == kAt + 9 &&
                offsetof(segment::RecordEntry, flags) == kAt + 10 &&
                offsetof(segment::RecordEntry, shape) == kAt + 11 &&
                offsetof(segment::RecordEntry, position) == kAt + 12);
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const uint64_t flags =
      origin.flags | (OpKind(info.op) == CallKind::kP2p ? segment::kRecordP2p : 0);
  const uint64_t words[] = {
      static_cast<uint32_t>(info.peer) | uint64_t{origin.group} << 32 |
          static_cast<uint64_t>(info.op) << 48 | uint64_t{info.dtype} << 56,
      info.reduction | flags << 16 | uint64_t{origin.shape} << 24 | position << 32,
  };
  memcpy(reinterpret_cast<char*>(record) + kAt, words, sizeof(words));
}

ROLLCALL_HOT void FillRecord(segment::RecordEntry* record, uint64_t index, uint64_t position,
                             const CallInfo& info, const RecordOrigin& origin, uint64_t now) {
  record->seq.store(static_cast<uint32_t>(2 * index + 1), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  record->thread = origin.thread;
  StoreArguments(record, info, origin, position);
  record->entered = now;
  record->returned.store(0, std::memory_order_relaxed);
  record->count = info.count;
  record->stream = reinterpret_cast<uintptr_t>(info.stream);
  record->caller = origin.caller;
  record->seq.store(static_cast<uint32_t>(2 * index + 2), std::memory_order_release);
}

// Writes the record of the call and counts the call as entered.
ROLLCALL_HOT OpenRecord EnterCall(LocalComm* comm, const CallInfo& info, const RecordOrigin& origin,
                                  uint64_t now) {
  segment::CommEntry* entry = comm->entry;
  const bool p2p = OpKind(info.op) == CallKind::kP2p;
  const uint64_t index = Get(entry->recorded);
  const uint64_t position = Get(entry->entered);
  const OpenRecord open = {RecordAt(comm, index), Get(entry->signature), p2p};
  FillRecord(open.record, index, position, info, origin, now);
  entry->last_entered.store(now, std::memory_order_relaxed);
  Raise(&entry->recorded, index + 1);
  if (p2p) {
    Raise(&entry->p2p_entered, Get(entry->p2p_entered) + 1);
    return open;
  }
  const uint64_t signature =
      segment::NextSignature(open.signature, static_cast<uint8_t>(Canonical(info.op)), info.dtype,
                             info.reduction, info.peer, info.count);
  entry->signature.store(signature, std::memory_order_relaxed);
  if ((position + 1) % segment::kCheckpointInterval == 0) {
    segment::CheckpointEntry* checkpoint =
        &entry->checkpoints[(position + 1) / segment::kCheckpointInterval %
                            segment::kCheckpointCapacity];
    checkpoint->signature.store(signature, std::memory_order_relaxed);
    Raise(&checkpoint->position, position + 1);
  }
  Raise(&entry->entered, position + 1);
  return open;
}

ROLLCALL_HOT OpenRecord BeginRecord(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                                    uint64_t now, const void* caller, bool grouped) {
  const RecordOrigin origin = {thread->thread_id, grouped ? thread->group_number : uint16_t{0},
                               thread->next_shape, 0, CallerWord(caller)};
  thread->next_shape = thread->kept_shape;
  return EnterCall(comm, info, origin, now);
}

// Reverts the position and the signature: NCCL refused the call, so it takes no position.
inline void RevertPosition(LocalComm* comm, const OpenRecord& open) {
  comm->placed_out_of_order = true;  // the next call gets the same position, so a value comes twice
  segment::CommEntry* entry = comm->entry;
  if (open.p2p) {
    Raise(&entry->p2p_entered, Get(entry->p2p_entered) - 1);
    return;
  }
  entry->signature.store(open.signature, std::memory_order_relaxed);
  Raise(&entry->entered, Get(entry->entered) - 1);
}

inline bool IsError(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

ROLLCALL_HOT void EndRecord(LocalComm* comm, const OpenRecord& open, ncclResult_t result,
                            bool grouped) {
  open.record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
  if (__builtin_expect(result != ncclSuccess, 0)) {
    if (!IsError(result)) return;  // ncclInProgress: late.h records the end of the call
    open.record->returned.store(Now(), std::memory_order_release);
    RevertPosition(comm, open);
    return;
  }
  if (grouped) return;  // CloseGroup() records the end of the call
  open.record->returned.store(Now(), std::memory_order_release);
  segment::CommEntry* entry = comm->entry;
  if (open.p2p) {
    Raise(&entry->p2p_returned, Get(entry->p2p_entered));
  } else {
    Raise(&entry->returned, Get(entry->entered));
  }
}

}  // namespace rollcall
