// SPDX-License-Identifier: Apache-2.0
// Cuts the bytes of an input into numbers and texts. Behind the end there are zeros and empty
// texts, so every input is valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rollcall {
namespace fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  template <typename Number>
  Number Take() {
    Number value = 0;
    const std::string_view bytes = TakeBytes(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  // At most `most` bytes.
  std::string_view TakeBytes(size_t most) {
    const std::string_view bytes = rest_.substr(0, most);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  // A part with its size, two bytes, in front.
  std::string_view TakePart() { return TakeBytes(Take<uint16_t>()); }

  std::string_view TakeRest() { return TakeBytes(rest_.size()); }

  // Up to the next line feed, which it drops.
  std::string_view TakeLine() {
    const size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return line;
  }

 private:
  std::string_view rest_;
};

// Writes what TakePart() reads.
inline std::string Part(std::string_view bytes) {
  const auto size = static_cast<uint16_t>(std::min<size_t>(bytes.size(), UINT16_MAX));
  std::string part(sizeof(size), '\0');
  std::memcpy(part.data(), &size, sizeof(size));
  return part.append(bytes.substr(0, size));
}

// Writes what Take() reads.
template <typename Number>
std::string Bytes(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace fuzz
}  // namespace rollcall
