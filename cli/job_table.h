// SPDX-License-Identifier: Apache-2.0
// The jobs of a daemon as a table for a terminal: one line for each job, those that hang first.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/status_lines.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

enum class JobOrder {
  kUrgency,  // hung, suspected, waiting, running, ended; in a state the longest first
  kName,
  kTime,   // the longest in its state first
  kRanks,  // the largest first
};

inline constexpr JobOrder kJobOrders[] = {JobOrder::kUrgency, JobOrder::kName, JobOrder::kTime,
                                          JobOrder::kRanks};

// "urgency", "name", "time", "ranks".
const char* NameOf(JobOrder order);

// Sorts the jobs of an answer.
void SortJobs(JobOrder order, v1::StatusResponse* status);

// Returns a header and a line for each job. No line is longer than `columns`; 0 means as long as
// its text.
std::vector<StatusLine> JobTable(const v1::StatusResponse& status, int columns);

// "3 jobs: 1 hung, 2 running; 12 agents connected".
std::string CountJobs(const v1::StatusResponse& status);

// Which daemons on the same database do not answer, so that their jobs may be missing, or empty.
std::string SilentDaemons(const v1::StatusResponse& status);

// The distributed jobs that run without Rollcall's library, with what to type. Empty if there is
// none. `columns`: as of JobTable().
std::vector<StatusLine> UnrecordedLines(const v1::StatusResponse& status, int columns);

// Returns the job that hangs and has hung the longest; nullptr if no job hangs.
const v1::JobStatus* WorstJob(const v1::StatusResponse& status);

// Returns the name of the worst job with its whole verdict, wrapped to `columns`, or on one line if
// `columns` is 0. Empty if no job hangs.
std::vector<StatusLine> WorstVerdict(const v1::StatusResponse& status, int columns);

// CountJobs(), WorstVerdict(), JobTable(), UnrecordedLines() and SilentDaemons(), as `rollcall
// status` prints them.
std::vector<StatusLine> StatusTable(const v1::StatusResponse& status, int columns);

// The number of jobs that hang now.
int CountHung(const v1::StatusResponse& status);

}  // namespace rollcall
