// SPDX-License-Identifier: Apache-2.0
#include "security/shown_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/match.h"
#include "base/utf8.h"

namespace rollcall {
namespace {

constexpr char kEscape = '\x1b', kBell = '\x07', kBackspace = '\x08', kDelete = '\x7f';
// The final bytes of control sequences that move the cursor: what follows stands apart.
constexpr absl::string_view kMoves = "ABCDEFGHIZ`adef";

struct CodeRange {
  uint32_t first, last;
};

// Unicode's Default_Ignorable_Code_Point, Bidi_Control, annotation and control characters.
constexpr CodeRange kWithoutWidth[] = {
    {0x0080, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c}, {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x202a, 0x202e}, {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

// Unicode's White_Space beyond ASCII.
constexpr CodeRange kBlanks[] = {
    {0x0085, 0x0085}, {0x00a0, 0x00a0}, {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

template <size_t kCount>
bool IsIn(const CodeRange (&ranges)[kCount], uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

bool IsBetween(char c, char first, char last) { return c >= first && c <= last; }

// Past the characters from `at` on that are between two others.
size_t SkipBetween(absl::string_view text, size_t at, char first, char last) {
  while (at < text.size() && IsBetween(text[at], first, last)) ++at;
  return at;
}

// A control sequence, whose parameters begin at `at`. Takes it away.
void SkipSequence(absl::string_view text, size_t* at, std::string* out) {
  *at = SkipBetween(text, *at, '0', '?');
  *at = SkipBetween(text, *at, ' ', '/');
  if (*at >= text.size() || !IsBetween(text[*at], '@', '~')) return;
  if (absl::StrContains(kMoves, absl::string_view(&text[*at], 1))) *out += ' ';
  ++*at;
}

// A string for the terminal, such as a title: up to its end, or to the end of the line.
size_t SkipString(absl::string_view text, size_t at) {
  for (; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == kBell) return at + 1;
    if (text[at] == kEscape) return at + 1 < text.size() && text[at + 1] == '\\' ? at + 2 : at;
  }
  return at;
}

// What follows an escape character at `at`.
void SkipEscape(absl::string_view text, size_t* at, std::string* out) {
  if (*at >= text.size()) return;
  const char kind = text[*at];
  if (kind == '[') {
    ++*at;
    SkipSequence(text, at, out);
  } else if (absl::StrContains("]PX^_", absl::string_view(&kind, 1))) {
    *at = SkipString(text, *at + 1);
  } else {
    *at = SkipBetween(text, *at, ' ', '/');
    if (*at < text.size() && IsBetween(text[*at], '0', '~')) ++*at;
  }
}

void TakeBack(std::string* out) {
  while (!out->empty() && IsUtf8Tail(out->back())) out->pop_back();
  if (!out->empty() && out->back() != '\n') out->pop_back();
}

bool IsControl(char c) {
  return (IsBetween(c, '\0', '\x1f') && !IsBetween(c, '\t', '\r')) || c == kDelete;
}

bool IsPlain(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsBetween(c, ' ', '~') || IsBetween(c, '\t', '\r'); });
}

// Adds the character of several bytes at `at`, or one byte that is not a character.
void AddCharacter(absl::string_view text, size_t* at, std::string* out) {
  const Utf8Character c = Utf8At(std::string_view(text.data(), text.size()), *at);
  const size_t begin = *at;
  *at += std::max<size_t>(c.length, 1);
  if (c.length > 0 && c.code == 0x9b) {  // begins a control sequence, in one character
    SkipSequence(text, at, out);
  } else if (c.length > 0 && IsIn(kBlanks, c.code)) {
    *out += ' ';
  } else if (c.length == 0 && IsUtf8Tail(text[begin])) {
    *out += '?';  // after what has been left out, it could end another character
  } else if (c.length == 0 || !IsIn(kWithoutWidth, c.code)) {
    out->append(text.data() + begin, *at - begin);
  }
}

}  // namespace

std::string ShownText(absl::string_view text) {
  if (IsPlain(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == kEscape) {
      SkipEscape(text, &++at, &out);
    } else if (c == kBackspace) {
      TakeBack(&out);
      ++at;
    } else if (IsControl(c)) {
      ++at;
    } else {
      AddCharacter(text, &at, &out);
    }
  }
  return out;
}

}  // namespace rollcall
