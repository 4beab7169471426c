// SPDX-License-Identifier: Apache-2.0
#include "interpose/python/python_lines.h"

#include <algorithm>

namespace rollcall {
namespace {

struct Table {
  const uint8_t* bytes;
  size_t count;
  size_t size() const { return count; }
  uint8_t operator[](size_t i) const { return bytes[i]; }
};

constexpr int64_t kInstructionBytes = 2;

int LineByLnotab(const Table& table, int first_line, int64_t offset) {
  int64_t line = first_line;
  int64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += static_cast<uint8_t>(table[i]);
    if (address > offset) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return static_cast<int>(line);
}

int LineByRanges(const Table& table, int first_line, int64_t offset) {
  constexpr int8_t kNoLine = -128;
  int64_t line = first_line;
  int64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += static_cast<uint8_t>(table[i]);
    const auto change = static_cast<int8_t>(table[i + 1]);
    if (change != kNoLine) line += change;
    if (end > offset) return change == kNoLine ? 0 : static_cast<int>(line);
  }
  return 0;
}

// A number in 6 bits per byte, least significant first. Bit 6 marks that another byte follows.
uint64_t ReadNumber(const Table& table, size_t* at) {
  uint64_t value = 0;
  for (int shift = 0; *at < table.size() && shift < 60; shift += 6) {
    const auto byte = static_cast<uint8_t>(table[(*at)++]);
    value |= uint64_t{byte & 0x3fu} << shift;
    if ((byte & 0x40) == 0) break;
  }
  return value;
}

int64_t ReadSigned(const Table& table, size_t* at) {
  const uint64_t value = ReadNumber(table, at);
  // Longer than any function: a damaged table must not overflow the sum.
  const auto magnitude = static_cast<int64_t>(std::min<uint64_t>(value >> 1, 1 << 24));
  return (value & 1) != 0 ? -magnitude : magnitude;
}

int LineByLocations(const Table& table, int first_line, int64_t offset) {
  constexpr int kNoLocation = 15;
  constexpr int kLong = 14;
  constexpr int kNoColumns = 13;
  constexpr int kOneLine = 10;  // 10, 11, 12: the line advances by the code minus 10
  int64_t line = first_line;
  int64_t end = 0;
  for (size_t at = 0; at < table.size();) {
    const auto head = static_cast<uint8_t>(table[at++]);
    const int code = head >> 3 & 15;
    end += ((head & 7) + 1) * kInstructionBytes;
    if (code == kLong) {
      line += ReadSigned(table, &at);
      for (int i = 0; i < 3; ++i) ReadNumber(table, &at);  // end line, columns
    } else if (code == kNoColumns) {
      line += ReadSigned(table, &at);
    } else if (code >= kOneLine && code < kNoColumns) {
      line += code - kOneLine;
      at += 2;
    } else if (code < kOneLine) {
      at += 1;
    }
    if (end > offset) return code == kNoLocation ? 0 : static_cast<int>(line);
  }
  return 0;
}

}  // namespace

int PythonLine(PythonLines form, const uint8_t* bytes, size_t size, int first_line,
               int64_t offset) {
  const Table table = {bytes, size};
  if (offset < 0) return first_line;
  switch (form) {
    case PythonLines::kLnotab:
      return LineByLnotab(table, first_line, offset);
    case PythonLines::kRanges:
      return LineByRanges(table, first_line, offset);
    case PythonLines::kLocations:
      return LineByLocations(table, first_line, offset);
  }
  return 0;
}

}  // namespace rollcall
