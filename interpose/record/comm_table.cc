// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/comm_table.h"

#include "interpose/copy_text.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/python/call_sites.h"
#include "interpose/python/python_errors.h"
#include "interpose/python/torch_shapes.h"
#include "interpose/record/bus_guard.h"
#include "interpose/record/comm_blocks.h"
#include "interpose/record/creations.h"
#include "interpose/record/recording.h"
#include "interpose/record/stack_signals.h"
#include "interpose/recorder.h"
#include "interpose/segment_file.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;
using segment::SegmentHeader;

void FillEntry(CommEntry* entry, const NewComm& what, bool recorded) {
  const auto relaxed = std::memory_order_relaxed;
  entry->id.store(what.id, relaxed);
  entry->base_id.store(what.base_id, relaxed);
  entry->parent_id.store(what.parent_id, relaxed);
  entry->split_id.store(what.split_id, relaxed);
  entry->rank.store(static_cast<uint32_t>(what.rank), relaxed);
  entry->size.store(static_cast<uint32_t>(what.size), relaxed);
  entry->parent_rank.store(static_cast<uint32_t>(what.parent_rank), relaxed);
  entry->parent_size.store(static_cast<uint32_t>(what.parent_size), relaxed);
  entry->device.store(static_cast<uint32_t>(-1), relaxed);
  CopyText(entry->name, sizeof(entry->name), what.name);
  entry->signature.store(segment::kSignatureSeed, relaxed);
  uint32_t flags = 0;
  if (recorded) flags |= segment::kFlagRing;
  if (what.non_blocking) flags |= segment::kFlagNonBlocking;
  entry->flags.store(flags, relaxed);
  entry->init_entered.store(Now(), relaxed);
  entry->state_since.store(Now(), relaxed);
  entry->state.store(static_cast<uint32_t>(CommState::kInitializing), std::memory_order_release);
}

void RaiseCommCount(uint32_t count) {
  SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  uint32_t seen = header->comm_count.load(std::memory_order_relaxed);
  while (seen < count && !header->comm_count.compare_exchange_weak(seen, count)) {
  }
}

// Sets the fields to the values of a block that was never used.
void ResetComm(LocalComm* comm, bool non_blocking) {
  comm->marker_base = 0;
  comm->non_blocking = comm->markers_unproven = non_blocking;
  comm->maker.store(0, std::memory_order_relaxed);
  comm->late.since.store(0, std::memory_order_relaxed);
  comm->late.marking_thread.store(0, std::memory_order_relaxed);
  comm->parent = nullptr;
  comm->has_no_side_channel.store(false, std::memory_order_relaxed);
  comm->by_plugin = false;
  comm->placed_out_of_order = false;
  for (PlacedMarker& placed : comm->placed) placed = PlacedMarker();
}

void StopCutShort() { StopRecording("somebody cut short"); }

// Starts what only a process with communicators needs. Each function does its work once.
void StartExtras() {
  if (recorder.options.sigbus) InstallBusGuard(&StopCutShort);
  InstallStackSignals();
  if (recorder.options.call_sites) StartCallSites();
  if (recorder.options.python_errors) StartPythonErrors();
  if (recorder.options.tensor_shapes) StartTensorShapes();
}

}  // namespace

LocalComm* AddComm(const NewComm& what) {
  if (!StartRecording()) return nullptr;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  if (what.base_id != 0) CountCreation(what.base_id, what.rank);
  if (SegmentIsCutShort()) {
    StopCutShort();
    return nullptr;
  }
  LocalComm* comm = ClaimBlock();
  if (comm == nullptr) return nullptr;
  ResetComm(comm, what.non_blocking);
  const uint64_t records = comm->ring_mask + 1;
  if (records != segment::kRingCapacity) {
    comm->entry->ring_capacity.store(static_cast<uint32_t>(records), std::memory_order_relaxed);
  }
  FillEntry(comm->entry, what, IsRecorded(comm));
  RaiseCommCount(comm->index + 1);
  StartExtras();
  return comm;
}

void SetState(LocalComm* comm, segment::CommState state) {
  comm->entry->state_since.store(Now(), std::memory_order_relaxed);
  comm->entry->state.store(static_cast<uint32_t>(state), std::memory_order_release);
}

void ChangeState(LocalComm* comm, segment::CommState from, segment::CommState to) {
  auto expected = static_cast<uint32_t>(from);
  if (comm->entry->state.load(std::memory_order_acquire) != expected) return;
  comm->entry->state_since.store(Now(), std::memory_order_relaxed);
  comm->entry->state.compare_exchange_strong(expected, static_cast<uint32_t>(to));
}

}  // namespace rollcall
