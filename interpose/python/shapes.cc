// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/python/shapes.h"

#include <string.h>

#include "interpose/keep_errno.h"
#include "interpose/recorder.h"
#include "interpose/segment_file.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;
using segment::Shape;

enum class ShapeRoom { kNotTried, kUnderWay, kThere, kNone };
std::atomic<ShapeRoom> room{ShapeRoom::kNotTried};

// Open addressing by hash, with twice as many slots as shapes. `number`: 1 + the index of a Shape.
constexpr uint32_t kSlots = 512;
static_assert(kSlots > 2 * segment::kShapeCapacity - 1);
struct Slot {
  std::atomic<uint64_t> hash;
  std::atomic<uint32_t> number;
};
Slot slots[kSlots];
std::atomic<uint32_t> claimed{0};

bool MakeRoom() {
  ShapeRoom expected = ShapeRoom::kNotTried;
  if (room.load(std::memory_order_acquire) == ShapeRoom::kThere) return true;
  if (!room.compare_exchange_strong(expected, ShapeRoom::kUnderWay)) return false;
  const KeepErrno keep_errno;
  const bool made = ReserveInSegment(
      segment::kShapesOffset, segment::kShapesOffset + segment::kShapeCapacity * sizeof(Shape));
  room.store(made ? ShapeRoom::kThere : ShapeRoom::kNone, std::memory_order_release);
  return made;
}

int SizesIn(int dims) { return dims == kNameOnly ? 0 : dims; }

uint64_t ShapeHash(int dims, const int64_t* sizes, const char* call) {
  uint64_t hash = static_cast<uint64_t>(dims);
  for (const char* at = call; at != nullptr && *at != '\0'; ++at) {
    hash = segment::Mix(hash, static_cast<unsigned char>(*at));
  }
  for (int i = 0; i < SizesIn(dims); ++i) {
    hash = segment::Mix(hash, static_cast<uint64_t>(sizes[i]));
  }
  return hash == 0 ? 1 : hash;
}

// Writes the sizes before `dims`, which makes the shape valid.
uint8_t Add(SegmentHeader* header, int dims, const int64_t* sizes, const char* call) {
  const uint32_t index = claimed.fetch_add(1, std::memory_order_relaxed);
  if (index >= segment::kShapeCapacity) {
    claimed.store(segment::kShapeCapacity, std::memory_order_relaxed);
    return 0;
  }
  auto* shape =
      reinterpret_cast<Shape*>(reinterpret_cast<char*>(header) + segment::kShapesOffset) + index;
  const int count = SizesIn(dims);
  if (count != 0) memcpy(shape->sizes, sizes, static_cast<size_t>(count) * sizeof(sizes[0]));
  if (call != nullptr) strncpy(shape->call, call, sizeof(shape->call) - 1);
  shape->dims.store(static_cast<uint32_t>(dims) + 1, std::memory_order_release);
  return static_cast<uint8_t>(index + 1);
}

}  // namespace

uint8_t FindShape(int dims, const int64_t* sizes, const char* call) {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  const bool known = dims >= 0 && (dims <= segment::kShapeDims || dims == kNameOnly);
  if (header == nullptr || !known || (SizesIn(dims) != 0 && sizes == nullptr) || !MakeRoom()) {
    return 0;
  }
  const uint64_t hash = ShapeHash(dims, sizes, call);
  for (uint32_t i = 0, at = static_cast<uint32_t>(hash) % kSlots; i < kSlots;
       ++i, at = (at + 1) % kSlots) {
    uint64_t seen = slots[at].hash.load(std::memory_order_acquire);
    if (seen == hash) {
      // 0 while another thread adds the shape: this call's record then has none.
      return static_cast<uint8_t>(slots[at].number.load(std::memory_order_acquire));
    }
    if (seen != 0 || !slots[at].hash.compare_exchange_strong(seen, hash)) continue;
    const uint8_t number = Add(header, dims, sizes, call);
    slots[at].number.store(number, std::memory_order_release);
    return number;
  }
  return 0;
}

void ForgetShapes() {
  room.store(ShapeRoom::kNotTried);
  claimed.store(0);
  for (Slot& slot : slots) {
    slot.hash.store(0, std::memory_order_relaxed);
    slot.number.store(0, std::memory_order_relaxed);
  }
}

}  // namespace rollcall
