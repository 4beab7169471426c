// SPDX-License-Identifier: Apache-2.0
// The state of a daemon's jobs in lines for a terminal. Pure.
#pragma once

#include <string>
#include <vector>

#include "rollcall/v1/query.pb.h"

namespace rollcall {

enum class LineStyle { kPlain, kTitle, kGood, kWorse, kBad, kSoft };

struct StatusLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;
};

// All of it: `rollcall status`.
std::vector<StatusLine> StatusLines(const v1::StatusResponse& status);

// What a screen of this size has room for: a row a job, and of the chosen one more. `selected` is
// an index into status.jobs(). Lines are no longer than the screen is wide.
std::vector<StatusLine> WatchLines(const v1::StatusResponse& status, int selected, int columns,
                                   int rows);

// The screen's cells that UTF-8 text takes, cut to so many; one cell for each character.
std::string CutToWidth(const std::string& text, int columns);

}  // namespace rollcall
