// SPDX-License-Identifier: Apache-2.0
// The terminal behind stdout.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/status_lines.h"

namespace rollcall {

// The width of the terminal behind stdout; 0: stdout is no terminal.
int TerminalColumns();

// Whether output to stdout may have colours: it goes to a terminal that has them, and NO_COLOR
// (https://no-color.org) is not set.
bool HasColors();

// Prints the lines to stdout, in colours where HasColors().
void PrintLines(const std::vector<StatusLine>& lines);

}  // namespace rollcall
