// SPDX-License-Identifier: Apache-2.0
// Writes plain values as Python's pickler writes them (protocol 2), with
// strings remembered and referred to, as in real dumps.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace rollcall {

class PickleWriter {
 public:
  static std::string Write(const nlohmann::json& value) {
    PickleWriter writer;
    writer.out_ = "\x80\x02";
    writer.Add(value);
    return writer.out_ + ".";
  }

 private:
  void Number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  void AddText(const std::string& text) {
    const auto [at, is_new] = memo_.emplace(text, memo_.size());
    out_ += is_new ? 'X' : 'j';
    if (is_new) {
      Number(text.size(), 4);
      out_ += text + 'r';
    }
    Number(at->second, 4);
  }

  void Add(const nlohmann::json& value) {
    if (value.is_null()) {
      out_ += 'N';
    } else if (value.is_boolean()) {
      out_ += value.get<bool>() ? '\x88' : '\x89';
    } else if (value.is_number_integer()) {
      out_ += "\x8a\x08";
      Number(static_cast<uint64_t>(value.get<int64_t>()), 8);
    } else if (value.is_string()) {
      AddText(value.get<std::string>());
    } else if (value.is_array()) {
      out_ += "](";
      for (const nlohmann::json& item : value) Add(item);
      out_ += 'e';
    } else if (value.is_object()) {
      out_ += "}(";
      for (const auto& [key, item] : value.items()) {
        AddText(key);
        Add(item);
      }
      out_ += 'u';
    }
  }

  std::string out_;
  std::map<std::string, size_t> memo_;
};

}  // namespace rollcall
