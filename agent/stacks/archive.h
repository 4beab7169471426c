// SPDX-License-Identifier: Apache-2.0
// Writes values into bytes and reads them back, between two processes of one build on one host.
//
// A struct lists its fields once, in Fields(archive, &value), for both directions. The reader
// checks each size: bytes that are cut or damaged make it fail, and never read beyond them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {

// Values that need no Fields().
template <typename Value>
inline constexpr bool IsPlain =
    std::is_trivially_copyable_v<Value> || std::is_same_v<Value, std::string>;

class ArchiveWriter {
 public:
  template <typename Value>
  std::enable_if_t<std::is_trivially_copyable_v<Value>> operator()(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void operator()(const std::string& text) { Block(text.data(), text.size()); }
  void operator()(const std::vector<uint8_t>& bytes) { Block(bytes.data(), bytes.size()); }
  template <typename Value>
  void operator()(const std::vector<Value>& values) {
    (*this)(values.size());
    for (const Value& value : values) Put(value);
  }
  template <typename Value>
  void operator()(const std::map<uint64_t, Value>& values) {
    (*this)(values.size());
    for (const auto& [key, value] : values) {
      (*this)(key);
      Put(value);
    }
  }

  const std::string& bytes() const { return bytes_; }

 private:
  template <typename Value>
  void Put(const Value& value) {
    if constexpr (IsPlain<Value>) {
      (*this)(value);
    } else {
      Fields(*this, value);
    }
  }
  void Block(const void* data, size_t size) {
    (*this)(size);
    bytes_.append(static_cast<const char*>(data), size);
  }

  std::string bytes_;
};

class ArchiveReader {
 public:
  // `bytes` must outlive the reader.
  explicit ArchiveReader(absl::string_view bytes) : left_(bytes) {}

  // False if the bytes ended too early. The values are valid, and not what was written.
  bool ok() const { return ok_; }

  // Any other byte than 0 and 1 would not be a bool.
  void operator()(bool& value) {
    uint8_t byte = 0;
    (*this)(byte);
    value = byte != 0;
  }
  template <typename Value>
  std::enable_if_t<std::is_trivially_copyable_v<Value>> operator()(Value& value) {
    if (!Has(sizeof(value))) return;
    std::memcpy(&value, left_.data(), sizeof(value));
    left_.remove_prefix(sizeof(value));
  }
  void operator()(std::string& text) {
    const size_t size = Size();
    text.assign(left_.data(), size);
    left_.remove_prefix(size);
  }
  void operator()(std::vector<uint8_t>& bytes) {
    const size_t size = Size();
    bytes.assign(left_.begin(), left_.begin() + size);
    left_.remove_prefix(size);
  }
  template <typename Value>
  void operator()(std::vector<Value>& values) {
    // A value takes more bytes in memory than it may have here, so no room is made beforehand.
    values.clear();
    for (size_t left = Size(); left > 0 && ok_; --left) Get(&values.emplace_back());
  }
  template <typename Value>
  void operator()(std::map<uint64_t, Value>& values) {
    for (size_t left = Size(); left > 0 && ok_; --left) {
      uint64_t key = 0;
      (*this)(key);
      Get(&values[key]);
    }
  }

 private:
  template <typename Value>
  void Get(Value* value) {
    if constexpr (IsPlain<Value>) {
      (*this)(*value);
    } else {
      Fields(*this, *value);
    }
  }
  bool Has(size_t size) {
    ok_ = ok_ && size <= left_.size();
    return ok_;
  }
  // The number of values that follow. Each has at least a byte.
  size_t Size() {
    size_t size = 0;
    (*this)(size);
    return Has(size) ? size : 0;
  }

  absl::string_view left_;
  bool ok_ = true;
};

// `Value` as a parameter of Fields(): a const one where the archive writes.
template <typename Archive, typename Value>
using FieldsOf = std::conditional_t<std::is_same_v<Archive, ArchiveWriter>, const Value, Value>;

}  // namespace rollcall
