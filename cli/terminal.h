// SPDX-License-Identifier: Apache-2.0
// The terminals behind stdout and stderr.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/status_lines.h"

namespace rollcall {

// Returns the width of the terminal behind stdout; 0 if stdout is not a terminal.
int TerminalColumns();

// What a terminal can show.
struct TerminalLook {
  int columns = 0;  // 0 without a terminal: lines keep their length
  bool colors = false;
};

// Returns the look of the terminal behind the descriptor. A terminal has colours unless TERM is
// unset or "dumb", or NO_COLOR (https://no-color.org) is set.
TerminalLook LookOf(int descriptor);

// Returns the text within the escape sequences of the style, or the bare text without colours.
std::string InStyle(const std::string& text, LineStyle style, bool colors);

// Prints the lines to stdout, in colours where its terminal has them.
void PrintLines(const std::vector<StatusLine>& lines);

}  // namespace rollcall
