// SPDX-License-Identifier: Apache-2.0
// Formats the state of a daemon's jobs as lines for a terminal. Pure.
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

// The whole state, for `rollcall status`.
std::vector<StatusLine> StatusLines(const v1::StatusResponse& status);

// The part of the state that a screen of this size can show: one row for each job, and details of
// the selected one. `selected` is an index into status.jobs(). No line is longer than `columns`.
std::vector<StatusLine> WatchLines(const v1::StatusResponse& status, int selected, int columns,
                                   int rows);

// Cuts UTF-8 text to `columns` cells of the screen, at one cell for each character.
std::string CutToWidth(const std::string& text, int columns);

}  // namespace rollcall
