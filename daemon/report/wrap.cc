// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/wrap.h"

#include <algorithm>

#include "base/clean_text.h"
#include "base/utf8.h"

namespace rollcall {
namespace {

// Returns the end of a line that begins at `begin` and has room for `room` bytes.
size_t LineEnd(const std::string& text, size_t begin, size_t room) {
  if (text.size() - begin <= room) return text.size();
  const size_t blank = text.rfind(' ', begin + room);
  if (blank != std::string::npos && blank > begin) return blank;
  size_t end = begin + room;
  while (end > begin + 1 && IsUtf8Tail(text[end])) --end;
  return end;
}

}  // namespace

std::string Wrap(const std::string& first, const std::string& rest, const std::string& text) {
  const std::string clean = CleanText(text);
  std::string result;
  size_t begin = 0;
  do {
    const std::string& indent = begin == 0 ? first : rest;
    const size_t room = kTextColumns - std::min(indent.size(), kTextColumns / 2);
    const size_t end = LineEnd(clean, begin, room);
    result += indent + clean.substr(begin, end - begin) + "\n";
    begin = end;
    while (begin < clean.size() && clean[begin] == ' ') ++begin;
  } while (begin < clean.size());
  return result;
}

}  // namespace rollcall
