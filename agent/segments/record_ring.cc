// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/record_ring.h"

#include <algorithm>
#include <cstring>

#include "agent/segments/segment_copy.h"
#include "agent/segments/word_copies.h"

namespace rollcall {
namespace {

using segment::RecordEntry;

// Reads the records `begin` to `end`, at most as many as the ring has.
bool ReadRing(const SegmentFile& file, uint64_t ring, uint64_t capacity, uint64_t begin,
              uint64_t end, RecordEntry* records) {
  const uint64_t first = begin % capacity;
  const uint64_t before_wrap = std::min(capacity - first, end - begin);
  constexpr size_t kBytes = sizeof(RecordEntry);
  return file.ReadAt(ring + first * kBytes, static_cast<void*>(records), before_wrap * kBytes) &&
         file.ReadAt(ring, static_cast<void*>(records + before_wrap),
                     (end - begin - before_wrap) * kBytes);
}

bool AreEqual(const RecordEntry* a, const RecordEntry* b, uint64_t count) {
  return memcmp(static_cast<const void*>(a), static_cast<const void*>(b), count * sizeof(*a)) == 0;
}

// Skips what the process has overwritten. Returns the first record to read.
uint64_t SkipLost(uint64_t end, uint64_t capacity, RingProgress* progress) {
  const uint64_t begin = progress->next;
  if (end <= capacity || begin >= end - capacity) return begin;
  progress->lost += end - capacity - begin;
  return end - capacity;
}

}  // namespace

bool RecordRing::ReadTwice(const SegmentFile& file, uint64_t ring, uint64_t capacity,
                           uint64_t begin, uint64_t end) {
  if (records_ == nullptr) {
    records_ = std::make_unique<RecordEntry[]>(segment::kRingCapacity);
    again_ = std::make_unique<RecordEntry[]>(segment::kRingCapacity);
  }
  return ReadRing(file, ring, capacity, begin, end, records_.get()) &&
         ReadRing(file, ring, capacity, begin, end, again_.get());
}

void RecordRing::Read(const SegmentFile& file, const TickClock& clock, uint64_t capacity,
                      RingProgress* progress, CommSnapshot* comm) {
  const uint64_t end = comm->recorded;
  const uint64_t begin = SkipLost(end, capacity, progress);
  progress->next = end;
  if (begin == end) {
    comm->records_lost = progress->lost;
    return;
  }
  const uint64_t ring = segment::CommBlockOffset(comm->index) + segment::kRingOffset;
  if (!ReadTwice(file, ring, capacity, begin, end)) return;
  const bool unchanged = AreEqual(records_.get(), again_.get(), end - begin);
  comm->records.reserve(end - begin);
  for (uint64_t n = begin; n < end; ++n) {
    const RecordEntry& record = records_[n - begin];
    const bool same = unchanged || AreEqual(&record, &again_[n - begin], 1);
    const bool whole = same && Get(record.seq) == static_cast<uint32_t>(2 * n + 2);
    if (!whole) {
      // The process is writing this record (read it next time) or has overwritten it (lost).
      if (n + capacity / 2 < end) {
        ++progress->lost;
      } else {
        progress->next = std::min(progress->next, n);
      }
      continue;
    }
    comm->records.push_back(CopyRecord(record, n, comm->entered, clock));
    if (record.shape != 0) comm->records.back().shape = ReadShape(file, record.shape);
    if (comm->records.back().returned_ns == 0) progress->next = std::min(progress->next, n);
  }
  comm->records_lost = progress->lost;
}

// Returns "" if the shape is missing or invalid.
const std::string& RecordRing::ReadShape(const SegmentFile& file, uint8_t number) {
  static_assert(segment::kShapeCapacity == UINT8_MAX);
  shapes_.resize(segment::kShapeCapacity);
  std::string& text = shapes_[number - 1];
  if (!text.empty()) return text;
  Copy<segment::Shape> shape;
  const uint64_t offset = segment::kShapesOffset + (number - 1) * sizeof(segment::Shape);
  if (file.ReadAt(offset, &shape)) text = ShapeText(*shape);
  return text;
}

}  // namespace rollcall
