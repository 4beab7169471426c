// SPDX-License-Identifier: Apache-2.0
#include "fast/edge_counters.h"

#include <cstring>

namespace rollcall {
namespace fuzz {
namespace {

// 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
uint8_t RangeOf(uint8_t count) {
  if (count <= 3) return static_cast<uint8_t>(1u << (count - 1));
  if (count < 8) return 1 << 3;
  if (count < 16) return 1 << 4;
  if (count < 32) return 1 << 5;
  return count < 128 ? 1 << 6 : 1 << 7;
}

}  // namespace

EdgeCounters& EdgeCounters::Get() {
  static auto& counters = *new EdgeCounters();
  return counters;
}

void EdgeCounters::Register(uint8_t* begin, uint8_t* end) {
  for (const Part& part : parts_) {
    if (part.begin == begin) return;
  }
  const auto size = static_cast<size_t>(end - begin);
  parts_.push_back({begin, size, seen_.size()});
  seen_.resize(seen_.size() + size);
}

void EdgeCounters::Clear() {
  for (const Part& part : parts_) std::memset(part.begin, 0, part.size);
}

bool EdgeCounters::IsNew(const Part& part, size_t at) {
  if (part.begin[at] == 0) return false;
  uint8_t& seen = seen_[part.first + at];
  const uint8_t range = RangeOf(part.begin[at]);
  if ((seen & range) != 0) return false;
  if (seen == 0) ++edges_;
  seen |= range;
  return true;
}

// Eight edges at a time: most have no count.
bool EdgeCounters::FindNew() {
  bool is_new = false;
  for (const Part& part : parts_) {
    size_t at = 0;
    for (; at + sizeof(uint64_t) <= part.size; at += sizeof(uint64_t)) {
      uint64_t eight = 0;
      std::memcpy(&eight, part.begin + at, sizeof(eight));
      if (eight == 0) continue;
      for (size_t i = at; i < at + sizeof(uint64_t); ++i) is_new |= IsNew(part, i);
    }
    for (; at < part.size; ++at) is_new |= IsNew(part, at);
  }
  return is_new;
}

}  // namespace fuzz
}  // namespace rollcall

// What the compiler's code calls, once for each program or library.
extern "C" void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
extern "C" void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end) {
  rollcall::fuzz::EdgeCounters::Get().Register(begin, end);
}
