// SPDX-License-Identifier: Apache-2.0
#include "byte_mutator.h"

#include <algorithm>
#include <cstring>

namespace rollcall {
namespace fuzz {
namespace {

constexpr size_t kMostMoved = 64;

size_t Below(size_t limit, std::minstd_rand* random) {
  return limit == 0 ? 0 : (*random)() % limit;
}

uint64_t AnyNumber(std::minstd_rand* random) {
  return uint64_t{(*random)()} << 40 ^ uint64_t { (*random)() } << 20 ^ (*random)();
}

size_t Erase(uint8_t* data, size_t size, std::minstd_rand* random) {
  const size_t at = Below(size, random);
  const size_t count = std::min(1 + Below(kMostMoved, random), size - at);
  std::memmove(data + at, data + at + count, size - at - count);
  return size - count;
}

// Copies a piece of the buffer, or one byte several times, to another place.
size_t Insert(uint8_t* data, size_t size, size_t most, std::minstd_rand* random) {
  const size_t count = std::min(1 + Below(kMostMoved, random), most - size);
  const size_t at = Below(size + 1, random);
  uint8_t piece[kMostMoved];
  std::memset(piece, static_cast<int>((*random)() & 0xff), count);
  if (size >= count && (*random)() % 2 == 0) {
    std::memcpy(piece, data + Below(size - count + 1, random), count);
  }
  std::memmove(data + at + count, data + at, size - at);
  std::memcpy(data + at, piece, count);
  return size + count;
}

void WriteNumber(uint8_t* data, size_t size, std::minstd_rand* random) {
  const uint64_t number = UnusualNumber(random);
  const size_t width = std::min(size_t{1} << Below(4, random), size);
  std::memcpy(data + Below(size - width + 1, random), &number, width);
}

}  // namespace

uint64_t UnusualNumber(std::minstd_rand* random) {
  const uint64_t power = uint64_t{1} << Below(64, random);
  switch (Below(7, random)) {
    case 0:
      return Below(4, random);
    case 1:
      return ~uint64_t{0} - Below(3, random);
    case 2:
      return power;
    case 3:
      return power - 1;
    case 4:
      return ~power;
    case 5:
      return Below(300, random);
    default:
      return AnyNumber(random);
  }
}

size_t MutateBytes(uint8_t* data, size_t size, size_t most, std::minstd_rand* random) {
  const size_t kind = Below(5, random);
  if (size < most && (size == 0 || kind == 0)) return Insert(data, size, most, random);
  if (size == 0) return 0;
  switch (kind) {
    case 1:
      return Erase(data, size, random);
    case 2:
      WriteNumber(data, size, random);
      return size;
    case 3:
      data[Below(size, random)] ^= static_cast<uint8_t>(1u << Below(8, random));
      return size;
    default:
      data[Below(size, random)] = static_cast<uint8_t>((*random)());
      return size;
  }
}

}  // namespace fuzz
}  // namespace rollcall
