// SPDX-License-Identifier: Apache-2.0
// Runs library_steps under the preloaded library, and reads what it recorded.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "interpose/ops.h"
#include "preloaded_process.h"

namespace rollcall {

class LibraryStepsTest : public PreloadedProcessTest {
 protected:
  LibraryStepsTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  static std::vector<std::string> Command(const std::string& steps) {
    std::vector<std::string> command = {LIBRARY_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ')) command.emplace_back(step);
    return command;
  }

  // The segment of a process that took these steps.
  SegmentSnapshot After(const std::string& steps, const Environment& more = {}) {
    StartOver();
    EXPECT_EQ(Run(Command(steps), more), 0) << steps << "\n" << Stderr();
    return Read();
  }
  CommSnapshot CommAfter(const std::string& steps, const Environment& more = {}) {
    const SegmentSnapshot segment = After(steps, more);
    EXPECT_FALSE(segment.communicators.empty());
    return segment.communicators.empty() ? CommSnapshot() : segment.communicators[0];
  }
};

inline std::vector<Op> Ops(const CommSnapshot& comm) {
  std::vector<Op> ops;
  for (const RecordSnapshot& record : comm.records) ops.push_back(static_cast<Op>(record.op));
  return ops;
}

}  // namespace rollcall
