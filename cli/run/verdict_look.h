// SPDX-License-Identifier: Apache-2.0
// How a terminal shows the lines of a verdict. Pure.
#pragma once

#include <string>

#include "cli/terminal.h"

namespace rollcall {

// Colours the sentence, which is the first line, and breaks lines that begin with "rollcall: "
// between words. A word that is longer than the terminal, such as a path, stays whole. Without a
// terminal the text stays as it is.
std::string VerdictForTerminal(const std::string& text, const TerminalLook& look);

}  // namespace rollcall
