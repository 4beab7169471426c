// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/comm_blocks.h"

#include <stddef.h>
#include <sys/mman.h>

#include <initializer_list>

#include "interpose/record/blocked_threads.h"
#include "interpose/record/markers.h"
#include "interpose/recorder.h"
#include "interpose/segment_file.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::CommState;

// A size of a communicator's block, and what the segment then lacks.
struct BlockSize {
  size_t bytes;
  uint32_t records;
  RoomFor use;
  uint32_t left_out;
  const char* words;
};
constexpr uint32_t kShortRing = 64;
constexpr BlockSize kBlockSizes[] = {
    {segment::kCommBlockBytes, segment::kRingCapacity, RoomFor::kLongHistories, 0, nullptr},
    {segment::kRingOffset + kShortRing * sizeof(segment::RecordEntry), kShortRing,
     RoomFor::kShortHistories, segment::kLeftOutRecords, "shorter histories"},
    {segment::kRingOffset, 0, RoomFor::kPresence, segment::kLeftOutRings, "no histories of calls"}};
constexpr uint32_t kFirstComms = 8;  // of a process: the least that a diagnosis needs
constexpr int kBlockSizeCount = sizeof(kBlockSizes) / sizeof(kBlockSizes[0]);

// The largest size that there is room for. nullptr if there is no room.
const BlockSize* ReserveBlock(uint32_t index) {
  SegmentPart parts[kBlockSizeCount];
  const size_t begin = segment::CommBlockOffset(index);
  for (int i = 0; i < kBlockSizeCount; ++i) {
    parts[i] = {begin, begin + kBlockSizes[i].bytes, kBlockSizes[i].use};
  }
  if (index < kFirstComms) parts[kBlockSizeCount - 1].use = RoomFor::kProcess;
  const int chosen = ReserveFirstFit(parts, kBlockSizeCount);
  return chosen < 0 ? nullptr : &kBlockSizes[chosen];
}

void RecordLeftOut(uint32_t what, const char* words, const char* reason) {
  recorder.mapping.load(std::memory_order_acquire)->left_out.fetch_or(what);
  ReportPartialRecording(words, reason);
}

// A private ring takes the records if the segment has no room for them, so that the hot path is the
// same for every communicator. It is never read.
segment::RecordEntry* PrivateRing(LocalComm* comm) {
  if (comm->private_ring != nullptr) return comm->private_ring;
  void* memory = mmap(nullptr, kShortRing * sizeof(segment::RecordEntry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) comm->private_ring = static_cast<segment::RecordEntry*>(memory);
  return comm->private_ring;
}

// Points the communicator at the parts of its block. False if there is no memory.
bool SetBlock(LocalComm* comm, uint32_t index, uint32_t records) {
  char* block = reinterpret_cast<char*>(recorder.mapping.load(std::memory_order_acquire)) +
                segment::CommBlockOffset(index);
  comm->ring = records != 0 ? reinterpret_cast<segment::RecordEntry*>(block + segment::kRingOffset)
                            : PrivateRing(comm);
  if (comm->ring == nullptr) return false;
  comm->ring_mask = (records != 0 ? records : kShortRing) - 1;
  comm->lanes = reinterpret_cast<segment::MarkerLane*>(block + segment::kMarkersOffset);
  comm->index = index;
  comm->entry = reinterpret_cast<CommEntry*>(block);
  return true;
}

bool ClaimIndex(uint32_t* index) {
  *index = recorder.comms_claimed.load(std::memory_order_relaxed);
  while (*index < segment::kCommCapacity) {
    if (recorder.comms_claimed.compare_exchange_weak(*index, *index + 1)) return true;
  }
  return false;
}

// A block that no communicator has had. nullptr if all are in use, or there is no room.
LocalComm* ClaimNewBlock() {
  uint32_t index;
  if (!ClaimIndex(&index)) return nullptr;
  LocalComm* comm = &recorder.comms[index];
  const BlockSize* size = ReserveBlock(index);
  if (size != nullptr && SetBlock(comm, index, size->records)) {
    if (size->left_out != 0) RecordLeftOut(size->left_out, size->words, nullptr);
    return comm;
  }
  // Gives the index back, unless another thread has claimed the next one.
  uint32_t end = index + 1;
  recorder.comms_claimed.compare_exchange_strong(end, index);
  return nullptr;
}

// The first block whose communicator has ended and into which no thread and no GPU still writes.
LocalComm* ClaimEndedBlock() {
  const uint32_t count = recorder.comms_claimed.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    LocalComm* comm = &recorder.comms[i];
    if (comm->entry == nullptr || !MarkersHaveLanded(comm)) continue;
    for (CommState ended :
         {CommState::kDestroyed, CommState::kAborted, CommState::kFailed, CommState::kPassedOver}) {
      uint32_t expected = static_cast<uint32_t>(ended);
      // Read the state before `ending`: a teardown sets the state for the last time before it
      // decrements `ending`.
      if (comm->entry->state.load(std::memory_order_acquire) != expected ||
          comm->ending.load(std::memory_order_acquire) != 0 || IsInCall(comm)) {
        continue;
      }
      if (comm->entry->state.compare_exchange_strong(expected,
                                                     static_cast<uint32_t>(CommState::kEmpty))) {
        return comm;
      }
    }
  }
  return nullptr;
}

// Not memset(), because other threads have written there (copy_text.h).
void Clear(void* begin, size_t bytes) {
  auto* word = static_cast<segment::Word*>(begin);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) {
    word[i].store(0, std::memory_order_relaxed);
  }
}

// Clears the block, except for its state, which FillEntry() sets last. This touches the pages, so
// that the first calls do not pay for the page faults.
void ClearBlock(LocalComm* comm) {
  char* block = reinterpret_cast<char*>(comm->entry);
  static_assert(offsetof(CommEntry, state) == 0 && offsetof(CommEntry, flags) == 4);
  comm->entry->flags.store(0, std::memory_order_relaxed);
  Clear(block + sizeof(uint64_t), segment::kRingOffset - sizeof(uint64_t));
  Clear(comm->ring, (comm->ring_mask + 1) * sizeof(segment::RecordEntry));
}

// nullptr if there is no room (counted and reported).
LocalComm* ClaimRoom() {
  LocalComm* comm = ClaimNewBlock();
  if (comm == nullptr) comm = ClaimEndedBlock();
  if (comm != nullptr) return comm;
  recorder.mapping.load(std::memory_order_acquire)->lost_communicators.fetch_add(1);
  const bool is_full =
      recorder.comms_claimed.load(std::memory_order_relaxed) == segment::kCommCapacity;
  RecordLeftOut(segment::kLeftOutCommunicators, "some communicators are missing",
                is_full ? "1024 communicators are in use" : nullptr);
  return nullptr;
}

}  // namespace

bool IsRecorded(const LocalComm* comm) { return comm->ring != comm->private_ring; }

LocalComm* ClaimBlock() {
  LocalComm* comm = ClaimRoom();
  if (comm != nullptr) ClearBlock(comm);
  return comm;
}

}  // namespace rollcall
