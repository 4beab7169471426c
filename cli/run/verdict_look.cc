// SPDX-License-Identifier: Apache-2.0
#include "cli/run/verdict_look.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"

namespace rollcall {
namespace {

constexpr absl::string_view kPrefix = "rollcall: ";

// Returns the cells of the screen, at one for each character.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsUtf8Tail(c); }));
}

std::vector<std::string> Broken(absl::string_view text, size_t columns) {
  std::vector<std::string> lines(1);
  size_t used = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const size_t width = Width(word);
    if (used > 0 && used + 1 + width > columns) {
      lines.emplace_back();
      used = 0;
    }
    absl::StrAppend(&lines.back(), used == 0 ? "" : " ", word);
    used += width + (used == 0 ? 0 : 1);
  }
  return lines;
}

std::string LineForTerminal(absl::string_view line, LineStyle style, const TerminalLook& look) {
  if (!absl::StartsWith(line, kPrefix)) return absl::StrCat(line, "\n");
  const absl::string_view text = line.substr(kPrefix.size());
  const size_t indent = kPrefix.size() + std::min(text.find_first_not_of(' '), text.size());
  const size_t room =
      static_cast<size_t>(std::max(look.columns, 40)) - std::min<size_t>(indent, 20);
  std::string result;
  for (const std::string& part : Broken(line.substr(indent), room)) {
    const std::string margin(indent - kPrefix.size(), ' ');
    absl::StrAppend(&result, result.empty() ? kPrefix : std::string(kPrefix.size(), ' '), margin,
                    InStyle(part, style, look.colors), "\n");
  }
  return result;
}

}  // namespace

std::string VerdictForTerminal(const std::string& text, const TerminalLook& look) {
  if (look.columns == 0) return text;
  std::string result;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const LineStyle style = result.empty() ? LineStyle::kBad : LineStyle::kPlain;
    absl::StrAppend(&result, LineForTerminal(line, style, look));
  }
  return result;
}

}  // namespace rollcall
