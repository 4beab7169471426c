// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/calls/side_channel.h"

#include <stdio.h>

#include "interpose/record/comm_table.h"
#include "interpose/record/handle_table.h"
#include "interpose/recorder.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::Mix;

constexpr uint64_t kHostCalls = 0x686f737463616c6c;
constexpr uint64_t kSignals = 0x7369676e616c7300;

// Never the handle of an NCCL communicator: its lowest bit is set, so it is not an address.
ncclComm_t ChannelHandle(ncclComm_t comm, uint64_t kind) {
  return reinterpret_cast<ncclComm_t>(Mix(kind, reinterpret_cast<uintptr_t>(comm)) | 1);
}

void Open(LocalComm* comm, ncclComm_t handle, uint64_t kind, const char* what, uint32_t flags) {
  const CommEntry* entry = comm->entry;
  char name[sizeof(entry->name)];
  if (entry->name[0] != '\0') {
    snprintf(name, sizeof(name), "%s of %.40s", what, entry->name);
  } else {
    snprintf(name, sizeof(name), "%s of %08llx", what,
             static_cast<unsigned long long>(Get(entry->id) >> 32));
  }
  NewComm channel;
  channel.parent_id = Get(entry->id);
  channel.id = Mix(kind, channel.parent_id);
  channel.rank = static_cast<int32_t>(entry->rank.load(std::memory_order_relaxed));
  channel.size = static_cast<int32_t>(entry->size.load(std::memory_order_relaxed));
  channel.name = name;
  LocalComm* opened = AddComm(channel);
  if (opened == nullptr) {
    comm->has_no_side_channel.store(true, std::memory_order_relaxed);
    return;
  }
  opened->parent = comm->entry;
  opened->entry->device.store(entry->device.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
  opened->entry->flags.fetch_or(flags);
  SetState(opened, segment::CommState::kReady);
  // No markers: the first signal may be in a capture, which forbids registering memory.
  BindHandle(opened, handle);
}

ncclComm_t EnsureChannel(ncclComm_t comm, uint64_t kind, const char* what, uint32_t flags) {
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return comm;
  const ncclComm_t handle = ChannelHandle(comm, kind);
  if (FindComm(handle) == nullptr) {
    LocalComm* known = FindComm(comm);
    if (known == nullptr) return comm;
    // A channel that starts late would have other positions than on the other ranks.
    if (known->has_no_side_channel.load(std::memory_order_relaxed)) return handle;
    const InsideCall inside(thread);
    Open(known, handle, kind, what, flags);
  }
  return handle;
}

}  // namespace

ncclComm_t HostCallChannel(ncclComm_t comm) {
  return EnsureChannel(comm, kHostCalls, "host calls", segment::kFlagHostCalls);
}

ncclComm_t SignalChannel(ncclComm_t comm, int signal_index, int context) {
  const uint64_t which =
      static_cast<uint32_t>(signal_index) | uint64_t{static_cast<uint32_t>(context)} << 32;
  return EnsureChannel(comm, Mix(kSignals, which), "signals", 0);
}

void EndSideChannels(const LocalComm* comm) {
  const auto state =
      static_cast<segment::CommState>(comm->entry->state.load(std::memory_order_relaxed));
  ForEachComm([&](LocalComm* other) {
    if (other->parent != comm->entry || other->handle.load(std::memory_order_relaxed) == nullptr) {
      return;
    }
    ForgetHandle(other);
    SetState(other, state);
  });
}

}  // namespace rollcall
