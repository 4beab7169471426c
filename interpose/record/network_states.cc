// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/record/network_states.h"

#include <initializer_list>

#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/recorder.h"
#include "interpose/segment_file.h"

namespace rollcall {
namespace {

using segment::kNetworkChunkBytes;
using segment::kNetworkChunkEntries;
using segment::kNetworkChunks;
using segment::kNetworkSteps;
using segment::NetworkEntry;
using segment::NetworkTransfer;
using segment::SegmentHeader;

constexpr auto kRelaxed = std::memory_order_relaxed;
// How many entries of a chunk may hold a transfer: a bound for the search.
constexpr uint32_t kProbes = 16;
std::atomic<uint32_t> chunks_claimed{0};

NetworkEntry* EntriesOf(SegmentHeader* header, uint32_t chunk) {
  char* const area = reinterpret_cast<char*>(header) + segment::kNetworkOffset;
  return reinterpret_cast<NetworkEntry*>(area + chunk * kNetworkChunkBytes);
}

// Calls `each` for the entries that may hold `key`, in all chunks that have room, until it returns
// true.
template <typename Each>
void Probe(SegmentHeader* header, uint64_t key, Each each) {
  const uint32_t chunks = header->network_chunks.load(std::memory_order_acquire);
  const auto start = static_cast<uint32_t>(segment::Mix(segment::kSignatureSeed, key));
  for (uint32_t chunk = 0; chunk < kNetworkChunks; ++chunk) {
    if ((chunks >> chunk & 1) == 0) continue;
    NetworkEntry* const entries = EntriesOf(header, chunk);
    for (uint32_t i = 0; i < kProbes; ++i) {
      if (each(&entries[(start + i) % kNetworkChunkEntries])) return;
    }
  }
}

// Readers ignore the entry until `began` and `generation` are those of the new transfer.
void Reset(NetworkEntry* entry, uint64_t generation) {
  for (segment::Word* word :
       {&entry->began, &entry->begun, &entry->ended, &entry->waits, &entry->changed}) {
    word->store(0, kRelaxed);
  }
  entry->generation.store(generation, std::memory_order_release);
}

bool Claim(NetworkEntry* entry, uint64_t key, uint64_t generation) {
  uint64_t expected = 0;
  if (!entry->key.compare_exchange_strong(expected, key)) return false;
  Reset(entry, generation);
  return true;
}

uint64_t WithWait(uint64_t waits, uint64_t step, NetworkWait wait) {
  const int shift = static_cast<int>(step % kNetworkSteps) * 8;
  return (waits & ~(uint64_t{0xff} << shift)) | static_cast<uint64_t>(wait) << shift;
}

void ReportNoRoom(SegmentHeader* header) {
  header->left_out.fetch_or(segment::kLeftOutNetwork);
  ReportPartialRecording("no states of the network");
}

}  // namespace

bool MakeNetworkRoom() {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return false;
  uint32_t chunk = chunks_claimed.load(kRelaxed);
  while (chunk < kNetworkChunks && !chunks_claimed.compare_exchange_weak(chunk, chunk + 1)) {
  }
  if (chunk >= kNetworkChunks) return true;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  const size_t begin = segment::kNetworkOffset + chunk * kNetworkChunkBytes;
  const SegmentPart part = {begin, begin + kNetworkChunkBytes, RoomFor::kLongHistories};
  if (ReserveFirstFit(&part, 1) == 0) {
    header->network_chunks.fetch_or(1u << chunk);
    return true;
  }
  uint32_t claimed = chunk + 1;
  chunks_claimed.compare_exchange_strong(claimed, chunk);  // the next communicator tries again
  if (header->network_chunks.load(kRelaxed) != 0) return true;
  ReportNoRoom(header);
  return false;
}

NetworkEntry* FindTransfer(uint64_t generation, const NetworkTransfer& transfer) {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return nullptr;
  const uint64_t key = NetworkKey(transfer);
  NetworkEntry* found = nullptr;
  bool any_is_free = false;
  Probe(header, key, [&](NetworkEntry* entry) {
    const uint64_t its_key = Get(entry->key);
    const bool is_it = its_key == key;
    any_is_free = any_is_free || its_key == 0;
    if (is_it) found = entry;
    return is_it;
  });
  if (found != nullptr) {
    // An earlier communicator of this block that has ended without a word.
    if (Get(found->generation) != generation) Reset(found, generation);
    return found;
  }
  const auto claim = [&](NetworkEntry* entry) {
    const bool is_it = Get(entry->key) == 0 && Claim(entry, key, generation);
    if (is_it) found = entry;
    return is_it;
  };
  if (any_is_free) Probe(header, key, claim);
  if (found == nullptr) header->lost_network_states.fetch_add(1, kRelaxed);
  return found;
}

void BeginStep(NetworkEntry* entry, uint64_t step) {
  const uint64_t waits = Get(entry->waits), ended = step == 0 ? 0 : Get(entry->ended);
  if (Get(entry->begun) == step + 1 && Get(entry->ended) <= step &&
      segment::WaitOfStep(waits, step) == 0) {
    return;  // once more, and still not posted
  }
  const uint64_t now = Now();
  if (step == 0) entry->began.store(now, kRelaxed);
  entry->ended.store(ended, kRelaxed);
  entry->waits.store(step == 0 ? 0 : WithWait(waits, step, NetworkWait::kNone), kRelaxed);
  entry->begun.store(step + 1, kRelaxed);
  entry->changed.store(now, kRelaxed);
}

void SetWait(NetworkEntry* entry, uint64_t step, NetworkWait wait) {
  const uint64_t waits = Get(entry->waits), changed = WithWait(waits, step, wait);
  if (changed == waits) return;  // NCCL repeats the states in which it polls
  entry->waits.store(changed, kRelaxed);
  entry->changed.store(Now(), kRelaxed);
}

void EndStep(NetworkEntry* entry, uint64_t step) {
  const uint64_t begun = Get(entry->begun);
  if (begun == 0) return;
  const uint64_t newest = begun - 1;
  const uint64_t behind = (newest - step) % kNetworkSteps;  // 2^64 is a multiple of it
  entry->waits.store(WithWait(Get(entry->waits), step, NetworkWait::kNone), kRelaxed);
  if (behind <= newest) entry->ended.store(newest - behind + 1, kRelaxed);
  entry->changed.store(Now(), kRelaxed);
}

void ForgetTransfers(uint32_t comm, uint64_t generation) {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const uint32_t chunks = header->network_chunks.load(std::memory_order_acquire);
  for (uint32_t chunk = 0; chunk < kNetworkChunks; ++chunk) {
    if ((chunks >> chunk & 1) == 0) continue;
    NetworkEntry* const entries = EntriesOf(header, chunk);
    for (uint32_t i = 0; i < kNetworkChunkEntries; ++i) {
      const uint64_t key = Get(entries[i].key);
      if (key == 0 || segment::NetworkTransferOf(key).comm != comm) continue;
      if (Get(entries[i].generation) == generation) entries[i].key.store(0, kRelaxed);
    }
  }
}

void ForgetNetworkRoom() { chunks_claimed.store(0); }

}  // namespace rollcall
