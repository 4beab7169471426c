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

// Returns the escape sequence of a style, by ECMA-48; empty means the usual look.
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

TerminalLook LookOf(int descriptor) {
  if (isatty(descriptor) == 0) return {};
  winsize size = {};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const std::string_view terminal = Environment("TERM");
  const bool colors = Environment("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb";
  return {known ? size.ws_col : kUsualColumns, colors};
}

int TerminalColumns() { return LookOf(STDOUT_FILENO).columns; }

std::string InStyle(const std::string& text, LineStyle style, bool colors) {
  const std::string begin = colors ? SequenceOf(style) : "";
  return begin.empty() ? text : begin + text + "\x1b[0m";
}

void PrintLines(const std::vector<StatusLine>& lines) {
  const bool colors = LookOf(STDOUT_FILENO).colors;
  for (const StatusLine& line : lines) {
    std::cout << InStyle(line.text, line.style, colors) << "\n";
  }
}

}  // namespace rollcall
