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

// What a log has, as far as it was read.
struct ExplainedLog {
  std::vector<ExplainedLine> lines;  // in the order of the first lines
  uint64_t endless_line = 0;         // the line at which the reading ended; 0 if it read all
};

inline constexpr uint64_t kEndlessLine = 256 << 20;  // bytes

// Takes 64 KiB of memory at most, however long the lines are. Reads no further than so many bytes
// of one line: a device or a pipe may never end one.
ExplainedLog ExplainLines(std::istream& log, uint64_t longest_line = kEndlessLine);

}  // namespace rollcall
