// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/key_note_search.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/segments/key_text.h"
#include "interpose/key_note.h"

namespace rollcall {
namespace {

constexpr uint64_t kMostKeys = 1 << 20;

template <size_t size>
std::string ToText(const char (&text)[size]) {
  return KeyText(std::string(text, strnlen(text, size)), size - 1);
}

std::string InWords(const KeyNote& note) {
  const std::string first = ToText(note.first);
  if (note.keys < 2 || note.keys > kMostKeys) return first;
  return absl::StrCat(first, " ... ", ToText(note.last), " (", note.keys, " keys)");
}

// `from`, `to`: addresses.
std::optional<KeyNote> FindNote(const RawThread& thread, uint64_t from, uint64_t to) {
  if (from < thread.stack_base || from % alignof(KeyNote) != 0) return std::nullopt;
  const uint64_t size = std::min<uint64_t>(to - thread.stack_base, thread.stack.size());
  for (uint64_t at = from - thread.stack_base; at < size && sizeof(KeyNote) <= size - at;
       at += alignof(KeyNote)) {
    KeyNote note;
    memcpy(&note, thread.stack.data() + at, sizeof(note));
    if (std::equal(std::begin(note.magic), std::end(note.magic), kKeyNoteMagic)) return note;
  }
  return std::nullopt;
}

}  // namespace

std::string FindNotedKey(const RawThread& thread, const std::vector<Frame>& frames) {
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    const uint64_t from = frames[i].stack_pointer, to = frames[i + 1].stack_pointer;
    if (to <= from || !absl::EndsWith(frames[i].module, "librollcall.so")) continue;
    if (const auto note = FindNote(thread, from, to)) return InWords(*note);
  }
  return "";
}

}  // namespace rollcall
