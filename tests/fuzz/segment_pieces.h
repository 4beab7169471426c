// SPDX-License-Identifier: Apache-2.0
// The input of the target for segments. A segment has 46 MB, most of them zeros, so an input has
// only the pieces that are not zero: for each the region, the offset in it, and the bytes. A byte
// that is not a region may stand before a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "fuzz_input.h"
#include "interpose/segment.h"

namespace rollcall {
namespace fuzz {

inline constexpr uint8_t kSegmentRead = 0xff;   // the reader reads now
inline constexpr uint8_t kSegmentLater = 0xfe;  // the piece appears after so many calls of pread()
inline constexpr uint8_t kOfThisBoot = 1;       // flag: the segment says that it is of this boot
inline constexpr uint8_t kByHostClock = 2;      // flag: the reader has the clocks of the host
inline constexpr uint8_t kCutShort = 4;         // flag: the file ends after its size of kilobytes

inline constexpr size_t kSegmentRegions[] = {
    0,  // the header
    segment::kBlockedOffset,
    segment::CommBlockOffset(0),
    segment::CommBlockOffset(0) + segment::kMarkersOffset,
    segment::CommBlockOffset(0) + segment::kRingOffset,
    segment::CommBlockOffset(1),
    segment::CommBlockOffset(1) + segment::kMarkersOffset,
    segment::CommBlockOffset(1) + segment::kRingOffset,
    segment::CommBlockOffset(2),
    segment::kSitesOffset,
    segment::kShapesOffset,
    segment::kNetworkOffset,
};

// A piece of the segment. Without bytes it cuts the file short.
struct Piece {
  uint64_t offset = 0;
  std::string_view bytes;
};

inline Piece TakePiece(uint8_t region, Input* input) {
  const uint64_t begin = kSegmentRegions[region % std::size(kSegmentRegions)];
  const auto offset = input->Take<uint16_t>();
  return {begin + offset, input->TakePart()};
}

}  // namespace fuzz
}  // namespace rollcall
