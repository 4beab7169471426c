// SPDX-License-Identifier: Apache-2.0
// Finds the well-known lines of a log. Text of any program: nothing here relies on its form.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "cli/explained/explanations.h"

namespace rollcall {

// A row of the table with the lines of a log that match it.
struct ExplainedLine {
  const Explanation* explanation = nullptr;
  std::string text;    // of the first line, clean, at most kLongestShownLine
  uint64_t line = 0;   // the number of the first line, from 1
  uint64_t count = 0;  // of lines
};

inline constexpr size_t kLongestShownLine = 300;

// In the order of the first lines. Takes 64 KiB of memory at most, however long the lines are.
std::vector<ExplainedLine> ExplainLines(std::istream& log);

}  // namespace rollcall
