// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/barrier_name.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace rollcall {
namespace {

constexpr char kWaits[] = "CoordinationServiceAgent::WaitAtBarrier";
// Its callers, up to the interpreter, hold the name by value.
constexpr size_t kFramesWithTheName = 4;

// A short std::string of libstdc++, which holds its text itself.
struct ShortString {
  uint64_t text = 0;  // address of `bytes`
  uint64_t size = 0;
  char bytes[16] = {};
};
static_assert(sizeof(ShortString) == 32);

// Empty if it is not one.
std::string TextOf(const ShortString& string, uint64_t address) {
  if (string.text != address + offsetof(ShortString, bytes)) return "";
  if (string.size == 0 || string.size >= sizeof(string.bytes)) return "";
  const std::string text(string.bytes, string.size);
  const bool is_text = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  return is_text && string.bytes[string.size] == '\0' ? text : "";
}

// Empty if there is none, or there are two with different texts.
std::string FindOnlyText(const RawThread& thread, uint64_t from, uint64_t to) {
  std::string found;
  if (from < thread.stack_base || to <= from || from % sizeof(uint64_t) != 0) return found;
  const uint64_t size = std::min<uint64_t>(to - thread.stack_base, thread.stack.size());
  for (uint64_t at = from - thread.stack_base; at < size && sizeof(ShortString) <= size - at;
       at += sizeof(uint64_t)) {
    ShortString string;
    memcpy(&string, thread.stack.data() + at, sizeof(string));
    const std::string text = TextOf(string, thread.stack_base + at);
    if (text.empty() || text == found) continue;
    if (!found.empty()) return "";
    found = text;
  }
  return found;
}

}  // namespace

std::string FindBarrierName(const RawThread& thread, const std::vector<Frame>& frames) {
  const auto waits = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
    return absl::StrContains(frame.function, kWaits);
  });
  const auto left = static_cast<size_t>(frames.end() - waits);
  if (left < 2) return "";
  const auto end = waits + static_cast<ptrdiff_t>(std::min(kFramesWithTheName, left - 1));
  return FindOnlyText(thread, waits->stack_pointer, end->stack_pointer);
}

}  // namespace rollcall
