// SPDX-License-Identifier: Apache-2.0
// Stable replacements for names: the same name always becomes the same "host-1".
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace rollcall {

class Pseudonyms {
 public:
  // "host-1" for `kind` "host"; "" for "". `suffix`: "file-1.py" for ".py".
  std::string Of(const std::string& kind, const std::string& name, const std::string& suffix = "");
  // Returns a small number in the place of another one; 0 for 0.
  int32_t NumberOf(int32_t number);

  // From now on ReplaceIn() puts `pseudonym` in the place of `name`, too.
  void AddAlias(const std::string& name, const std::string& pseudonym);

  // The text without the names that are known by now: whole words only, long names first. Digits
  // alone are replaced only after "job ".
  std::string ReplaceIn(std::string_view text) const;

  // The names by their pseudonyms.
  std::map<std::string, std::string> Map() const;

 private:
  struct LongFirst {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };

  const std::pair<const std::string, std::string>* FindAt(std::string_view text, size_t at) const;

  std::map<std::string, std::map<std::string, std::string>> by_kind_;  // kind, name -> pseudonym
  // By first byte, for speed: a report has thousands of frames. Name -> pseudonym.
  std::map<char, std::map<std::string, std::string, LongFirst>> words_;
  std::map<int32_t, int32_t> numbers_;
};

}  // namespace rollcall
