// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace rollcall {
namespace {

constexpr int kUsualColumns = 80;

// The escape sequence of a style, by ECMA-48; "": the usual look.
const char* SequenceOf(LineStyle style) {
  switch (style) {
    case LineStyle::kTitle:
      return "\x1b[1m";
    case LineStyle::kGood:
      return "\x1b[32m";
    case LineStyle::kWorse:
      return "\x1b[33m";
    case LineStyle::kBad:
      return "\x1b[1;31m";
    case LineStyle::kSoft:
      return "\x1b[2m";
    case LineStyle::kPlain:
      break;
  }
  return "";
}

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int TerminalColumns() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

bool HasColors() {
  const std::string_view terminal = Environment("TERM");
  return isatty(STDOUT_FILENO) != 0 && Environment("NO_COLOR").empty() && !terminal.empty() &&
         terminal != "dumb";
}

void PrintLines(const std::vector<StatusLine>& lines) {
  const bool colors = HasColors();
  for (const StatusLine& line : lines) {
    const std::string_view begin = colors ? SequenceOf(line.style) : "";
    std::cout << begin << line.text << (begin.empty() ? "" : "\x1b[0m") << "\n";
  }
}

}  // namespace rollcall
