// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/lifecycle.h"

#include "interpose/real.h"
#include "interpose/record/call_record.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/group_lists.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/late.h"
#include "interpose/record/markers.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;

int32_t Ask(const char* symbol, ncclComm_t handle) {
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto query = reinterpret_cast<Query>(FindRealByName(symbol));
  int value = -1;
  return query != nullptr && query(handle, &value) == ncclSuccess ? value : -1;
}

}  // namespace

void RecordNcclVersion() {
  segment::SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  if (header->nccl_version != 0) return;
  using Query = ncclResult_t (*)(int*);
  const auto query = reinterpret_cast<Query>(FindRealByName("ncclGetVersion"));
  int version = 0;
  if (query != nullptr && query(&version) == ncclSuccess) header->nccl_version = version;
}

void RecordCreated(LocalComm* comm, ncclComm_t handle, ncclResult_t result) {
  CommEntry* entry = comm->entry;
  if (IsError(result)) {
    entry->async_error.store(static_cast<uint32_t>(result), std::memory_order_relaxed);
    SetState(comm, CommState::kFailed);
    return;
  }
  if (handle == nullptr) {
    SetState(comm, CommState::kPassedOver);
    return;
  }
  BindHandle(comm, handle);
  if (result == ncclInProgress) {
    comm->maker.store(this_thread.thread_id, std::memory_order_relaxed);
    return;
  }
  const uint64_t split_id = Get(entry->split_id);
  if (split_id != 0) {
    entry->rank.store(static_cast<uint32_t>(Ask("ncclCommUserRank", handle)),
                      std::memory_order_relaxed);
    entry->size.store(static_cast<uint32_t>(Ask("ncclCommCount", handle)),
                      std::memory_order_relaxed);
  }
  entry->device.store(static_cast<uint32_t>(Ask("ncclCommCuDevice", handle)),
                      std::memory_order_relaxed);
  RenewClock();
  SetState(comm, CommState::kReady);
}

void BindPending(ThreadState* thread, ncclResult_t result) {
  for (int i = 0; i < thread->pending_size; ++i) {
    const PendingComm& pending = thread->lists->pending[i];
    RecordCreated(pending.comm, IsError(result) ? nullptr : *pending.handle, result);
    if (result == ncclSuccess && *pending.handle != nullptr) EnableMarkersOnDevice(pending.comm);
  }
  thread->pending_size = 0;
}

void RecordAsyncError(LocalComm* comm, ncclComm_t handle, ncclResult_t state, uint64_t since) {
  CommEntry* entry = comm->entry;
  if (IsError(state)) {
    entry->async_error.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  }
  const auto comm_state = static_cast<CommState>(entry->state.load(std::memory_order_relaxed));
  if (state == ncclSuccess && comm_state == CommState::kInitializing) {
    RecordCreated(comm, handle, state);
  }
  // A watchdog thread must not call the driver, which may block it.
  const uint32_t thread = this_thread.thread_id;
  if (state == ncclSuccess && thread != 0 &&
      comm->maker.load(std::memory_order_relaxed) == thread) {
    comm->maker.store(0, std::memory_order_relaxed);
    EnableMarkersOnDevice(comm);
  }
  if (state != ncclInProgress) EndLateCall(comm, since, thread, state == ncclSuccess);
}

}  // namespace rollcall
