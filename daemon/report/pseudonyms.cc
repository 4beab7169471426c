// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/pseudonyms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

bool IsWordByte(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool IsNumber(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// Whether text[at, at + size) is a word of its own. A dash or a dot may follow.
bool IsWord(std::string_view text, size_t at, size_t size) {
  const bool begins = at == 0 || !IsWordByte(text[at - 1]) || !IsWordByte(text[at]);
  const size_t end = at + size;
  return begins && (end == text.size() || !IsWordByte(text[end]) || !IsWordByte(text[end - 1]));
}

bool MayReplace(std::string_view text, size_t at, std::string_view name) {
  if (!absl::StartsWith(absl::string_view(text.data() + at, text.size() - at),
                        absl::string_view(name.data(), name.size())) ||
      !IsWord(text, at, name.size())) {
    return false;
  }
  return !IsNumber(name) || absl::EndsWith(absl::string_view(text.data(), at), "job ");
}

}  // namespace

std::string Pseudonyms::Of(const std::string& kind, const std::string& name,
                           const std::string& suffix) {
  if (name.empty()) return "";
  auto& known = by_kind_[kind];
  const auto at = known.find(name);
  if (at != known.end()) return at->second;
  const std::string pseudonym = absl::StrCat(kind, "-", known.size() + 1, suffix);
  known[name] = pseudonym;
  AddAlias(name, pseudonym);
  return pseudonym;
}

int32_t Pseudonyms::NumberOf(int32_t number) {
  if (number == 0) return 0;
  return numbers_.emplace(number, static_cast<int32_t>(numbers_.size()) + 1).first->second;
}

void Pseudonyms::AddAlias(const std::string& name, const std::string& pseudonym) {
  if (!name.empty()) words_[name.front()].emplace(name, pseudonym);
}

std::string Pseudonyms::ReplaceIn(std::string_view text) const {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const std::pair<const std::string, std::string>* found = FindAt(text, at);
    if (found == nullptr) {
      out += text[at++];
    } else {
      out += found->second;
      at += found->first.size();
    }
  }
  return out;
}

// Returns the longest name at this place, or nullptr.
const std::pair<const std::string, std::string>* Pseudonyms::FindAt(std::string_view text,
                                                                    size_t at) const {
  const auto words = words_.find(text[at]);
  if (words == words_.end()) return nullptr;
  for (const auto& word : words->second) {
    if (MayReplace(text, at, word.first)) return &word;
  }
  return nullptr;
}

std::map<std::string, std::string> Pseudonyms::Map() const {
  std::map<std::string, std::string> map;
  for (const auto& [kind, names] : by_kind_) {
    for (const auto& [name, pseudonym] : names) map[pseudonym] = name;
  }
  for (const auto& [number, pseudonym] : numbers_) {
    map[absl::StrCat("process ", pseudonym)] = absl::StrCat(number);
  }
  return map;
}

}  // namespace rollcall
