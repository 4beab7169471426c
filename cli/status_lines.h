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

// "a-job", "a-tenant/a-job attempt 2".
std::string JobName(const v1::JobStatus& job);

// "12 jobs", "1000 of 5000 jobs".
std::string JobCount(const v1::StatusResponse& status);

// Returns whether the job ended while it hung: its last incident ended with it.
bool EndedHung(const v1::JobStatus& job);

// The sentence on why the job hangs, or hung when it ended; "" for others.
std::string VerdictOf(const v1::JobStatus& job);

LineStyle StateStyle(const std::string& state);

inline constexpr int kMostCommunicators = 10;  // of a job, unless all are wanted

// A job with its verdict, its other attempts and its communicators, those with the longest waits
// first; `most`: the most communicators, 0 means all.
std::vector<StatusLine> JobLines(const v1::JobStatus& job, int most);

// Where the whole verdict of a job stands on the screen.
enum class VerdictShown { kHere, kAbove };

// "waits for job engine (incident engine-1): rank 1 has ..."; empty if it waits for no other job.
std::string ReferralOf(const v1::JobStatus& job);

// Returns the same, no line longer than `columns`: the verdict and the warnings are wrapped.
// kAbove: the headline takes the verdict's place.
std::vector<StatusLine> JobScreen(const v1::JobStatus& job, int columns,
                                  VerdictShown shown = VerdictShown::kHere);

// Appends `text`, wrapped to `columns`.
void AddWrapped(const std::string& text, int columns, LineStyle style,
                std::vector<StatusLine>* lines);

// Cuts UTF-8 text to `columns` cells of the screen, at one cell for each character. A text that was
// cut ends with "...".
std::string CutToWidth(const std::string& text, int columns);

}  // namespace rollcall
