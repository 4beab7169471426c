// SPDX-License-Identifier: Apache-2.0
// The first error that each rank wrote into a log: NCCL's warnings, exceptions of Python, the
// watchdog of PyTorch. Text of any program: nothing here relies on its form, and of a long line
// only the beginning is read.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "security/redact.h"

namespace rollcall {

// The writer of a line, as far as the line and the log's name show it.
struct LogWriter {
  int32_t rank = -1;  // -1 if unknown
  std::string host;   // with `pid`, from NCCL's own prefix; empty if unknown
  int32_t pid = 0;
};

struct ErrorLine {
  LogWriter writer;
  std::string time;   // as the line gives it, "2026-11-23 10:00:01" or "10:00:01.5"; empty if it
                      // does not
  std::string text;   // clean, without the prefix; at most kLongestErrorLine
  std::string path;   // of the log
  uint64_t line = 0;  // in the log, from 1
};

inline constexpr size_t kLongestErrorLine = 200;

// Returns the rank in a log's path: 3 for "rank_3.log", "stderr-rank3.txt" and ".../3/stderr.log".
// -1 if there is none.
int32_t RankInPath(const std::string& path);

// The first error of each writer in this log, in the order of the lines, without what the redactor
// hides. Reads at most 256 MiB.
std::vector<ErrorLine> FindFirstErrors(std::istream& log, const std::string& path,
                                       const Redactor& redactor);

}  // namespace rollcall
