// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/calls/profiler_network.h"

#include "interpose/record/network_states.h"
#include "interpose/recorder.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;
using segment::NetworkEntry;

constexpr int kFirstVersion = 5;  // NCCL 2.28
static_assert(segment::kCommCapacity <= 1 << 16, "NetworkKey() has 16 bits for the index");

// What a handle stands for: a transfer, or a step of it.
struct NetworkEvent {
  NetworkEntry* entry = nullptr;  // nullptr if the handle is not ours
  bool is_step = false;
  uint32_t step = 0;  // modulo kNetworkSteps
};

void* HandleOf(NetworkEntry* entry, size_t part) { return reinterpret_cast<char*>(entry) + part; }

NetworkEvent FindEvent(const void* handle) {
  char* const mapping = reinterpret_cast<char*>(recorder.mapping.load(std::memory_order_acquire));
  if (mapping == nullptr || handle == nullptr) return {};
  const auto at = reinterpret_cast<uintptr_t>(handle) -
                  (reinterpret_cast<uintptr_t>(mapping) + segment::kNetworkOffset);
  if (at >= segment::kNetworkChunks * segment::kNetworkChunkBytes) return {};
  const auto part = static_cast<uint32_t>(at % sizeof(NetworkEntry));
  char* const entry = mapping + segment::kNetworkOffset + (at - part);
  return {reinterpret_cast<NetworkEntry*>(entry), part != 0, part - 1};
}

NetworkWait WaitIn(int state) {
  switch (state) {
    case profiler::kSendGpuWait:
      return NetworkWait::kSendGpu;
    case profiler::kSendPeerWait:
      return NetworkWait::kSendPeer;
    case profiler::kSendWait:
      return NetworkWait::kSend;
    case profiler::kReceiveWait:
      return NetworkWait::kReceive;
    case profiler::kReceiveFlushWait:
      return NetworkWait::kReceiveFlush;
    case profiler::kReceiveGpuWait:
      return NetworkWait::kReceiveGpu;
    default:
      return NetworkWait::kNone;
  }
}

bool IsCreated(const LocalComm* comm) {
  const CommEntry* entry = comm->entry;
  const uint32_t other = segment::kFlagHostCalls;
  return !comm->by_plugin && comm->parent == nullptr &&
         entry->state.load(std::memory_order_relaxed) ==
             static_cast<uint32_t>(CommState::kInitializing) &&
         (entry->flags.load(std::memory_order_relaxed) & other) == 0 &&
         entry->kind.load(std::memory_order_relaxed) == 0;
}

// A child has its rank and size only once its creation has returned.
bool IsChild(const LocalComm* comm) {
  return Get(comm->entry->split_id) != 0 || Get(comm->entry->parent_id) != 0;
}

bool Fits(const LocalComm* comm, int rank, int ranks) {
  return comm->entry->rank.load(std::memory_order_relaxed) == static_cast<uint32_t>(rank) &&
         comm->entry->size.load(std::memory_order_relaxed) == static_cast<uint32_t>(ranks);
}

// The communicator in whose creation this thread is.
LocalComm* CreatedByThisThread() {
  const ThreadState& thread = this_thread;
  if (!thread.inside || thread.blocked == nullptr ||
      thread.blocked->since.load(std::memory_order_relaxed) == 0) {
    return nullptr;
  }
  const uint32_t index = thread.blocked->comm.load(std::memory_order_relaxed);
  if (index >= recorder.comms_claimed.load(std::memory_order_acquire)) return nullptr;
  LocalComm* comm = &recorder.comms[index];
  return comm->entry != nullptr && IsCreated(comm) ? comm : nullptr;
}

// Whether each communicator of this process has a block.
bool KnowsAll() {
  const segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  return header != nullptr && Get(header->lost_communicators) == 0;
}

}  // namespace

bool RecordsNetwork(int version) {
  return version >= kFirstVersion && Recording() && recorder.options.network;
}

LocalComm* CommBeingCreated(int rank, int ranks, bool (*is_taken)(const LocalComm* comm)) {
  LocalComm* own = CreatedByThisThread();
  if (own != nullptr && !is_taken(own) && (IsChild(own) || Fits(own, rank, ranks))) return own;
  LocalComm* only = nullptr;
  int found = 0;
  ForEachComm([&](LocalComm* comm) {
    if (!IsCreated(comm) || is_taken(comm) || IsChild(comm) || !Fits(comm, rank, ranks)) return;
    only = comm;
    ++found;
  });
  return found == 1 && KnowsAll() ? only : nullptr;
}

void* StartTransfer(const LocalComm* comm, uint64_t generation, const profiler::ProxyOp& transfer,
                    bool is_p2p) {
  if (transfer.peer < 0) return nullptr;
  return FindTransfer(generation,
                      {comm->index, transfer.channel, transfer.peer, transfer.sends != 0, is_p2p});
}

void* StartNetworkStep(const void* transfer, const profiler::ProxyStep& step) {
  const NetworkEvent event = FindEvent(transfer);
  if (event.entry == nullptr || event.is_step || step.step < 0) return nullptr;
  const auto number = static_cast<uint64_t>(step.step);
  BeginStep(event.entry, number);
  return HandleOf(event.entry, 1 + number % segment::kNetworkSteps);
}

bool StopNetworkEvent(const void* handle) {
  const NetworkEvent event = FindEvent(handle);
  if (event.is_step) EndStep(event.entry, event.step);
  return event.entry != nullptr;
}

bool RecordNetworkState(const void* handle, int state) {
  const NetworkEvent event = FindEvent(handle);
  const NetworkWait wait = WaitIn(state);
  if (event.is_step && wait != NetworkWait::kNone) SetWait(event.entry, event.step, wait);
  return event.entry != nullptr;
}

}  // namespace rollcall
