// SPDX-License-Identifier: Apache-2.0
// Writes segment files by hand, for tests of the code that reads segments.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "interpose/ops.h"
#include "interpose/segment.h"

namespace rollcall {

class SegmentBuilder {
 public:
  static constexpr uint64_t kBaseNs = 1'700'000'000'000'000'000;  // realtime of tick 1000

  SegmentBuilder() : bytes_(segment::kHeaderBytes, 0) {
    segment::SegmentHeader* h = header();
    h->magic = segment::kMagic;
    h->layout_version = segment::kLayoutVersion;
    h->header_bytes = segment::kHeaderBytes;
    h->comm_block_bytes = segment::kCommBlockBytes;
    h->ring_capacity = segment::kRingCapacity;
    h->blocked_capacity = segment::kBlockedCapacity;
    h->checkpoint_interval = segment::kCheckpointInterval;
    h->pid = 4121;
    h->start_time = 88;
    h->global_rank = h->world_size = h->local_rank = -1;
    h->clock_source = segment::ClockSource::kMonotonic;
    h->first_clock.ticks = 1000;
    h->first_clock.monotonic_ns = 1000;
    h->first_clock.realtime_ns = kBaseNs;
  }

  // The segment of a process of this host and this pid namespace.
  void BelongTo(pid_t pid, uint64_t start_time) {
    header()->pid = pid;
    header()->start_time = start_time;
    struct stat about;
    if (stat("/proc/self/ns/pid", &about) == 0) header()->pid_namespace = about.st_ino;
    std::ifstream boot_id("/proc/sys/kernel/random/boot_id");
    boot_id.getline(header()->boot_id, sizeof(header()->boot_id));
  }

  segment::SegmentHeader* header() {
    return reinterpret_cast<segment::SegmentHeader*>(bytes_.data());
  }
  segment::BlockedEntry* blocked(uint32_t i) {
    return reinterpret_cast<segment::BlockedEntry*>(bytes_.data() + 4096) + i;
  }
  segment::CommEntry* entry(uint32_t i) {
    return reinterpret_cast<segment::CommEntry*>(bytes_.data() + segment::CommBlockOffset(i));
  }
  segment::MarkerLane* lane(uint32_t comm, uint32_t n) {
    return reinterpret_cast<segment::MarkerLane*>(bytes_.data() + segment::CommBlockOffset(comm) +
                                                  segment::kMarkersOffset) +
           n;
  }
  segment::RecordEntry* record(uint32_t comm, uint64_t n) {
    return reinterpret_cast<segment::RecordEntry*>(bytes_.data() + segment::CommBlockOffset(comm) +
                                                   segment::kRingOffset) +
           n % segment::kRingCapacity;
  }

  // A communicator that is ready; returns its index.
  uint32_t AddComm(uint64_t id, int32_t rank, int32_t size) {
    const uint32_t index = header()->comm_count++;
    bytes_.resize(segment::CommBlockOffset(index + 1), 0);
    segment::CommEntry* e = entry(index);
    e->state = static_cast<uint32_t>(segment::CommState::kReady);
    e->flags = segment::kFlagRing;
    e->id = id;
    e->rank = static_cast<uint32_t>(rank);
    e->size = static_cast<uint32_t>(size);
    e->init_entered = 1000;
    e->signature = segment::kSignatureSeed;
    return index;
  }

  // One all-reduce, entered at `tick` and returned a tick later.
  void AddAllReduce(uint32_t comm, uint64_t tick, uint64_t count = 8) {
    segment::CommEntry* e = entry(comm);
    const uint64_t n = e->recorded++;
    segment::RecordEntry* r = record(comm, n);
    r->seq = static_cast<uint32_t>(2 * n + 2);
    r->op = static_cast<uint8_t>(Op::kAllReduce);
    r->dtype = 7;
    r->peer = -1;
    r->count = count;
    r->position = static_cast<uint32_t>(e->entered);
    r->entered = tick;
    r->returned = tick + 1;
    e->signature =
        segment::NextSignature(e->signature, r->op, r->dtype, r->reduction, r->peer, count);
    ++e->entered;
    ++e->returned;
    e->last_entered = tick;
  }

  std::vector<char>& bytes() { return bytes_; }

  std::string Write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    return path;
  }

 private:
  std::vector<char> bytes_;
};

}  // namespace rollcall
