// SPDX-License-Identifier: Apache-2.0
// Words for evidence: what a process is doing, and what is unknown.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/progress.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// "stopped (state T)", "inside CommDestroy for 12 s", ...; "" if nothing is known.
std::string WhatItDoes(const JobState& job, int32_t process, int64_t now_ns);

// "exited normally", "killed by signal 9", "inside CommDestroy", ...; "" while the rank takes part.
std::string HowItEnded(const JobState& job, int32_t process, const Member* member);

// How a line of DescribeEvidence() says that a wait is seen, not inferred.
inline constexpr char kShownByMarkersOrHost[] = "shown by GPU markers or by the host thread's call";

// What shows that the ranks wait, one line for each kind of evidence.
std::vector<std::string> DescribeEvidence(const JobState& job, const std::vector<Waiter>& waiters,
                                    const std::string& call);

// The evidence that is missing to prove that the ranks wait.
std::vector<std::string> DescribeMissing(const JobState& job, const std::vector<Waiter>& waiters);

// A culprit with all known facts of its process.
Culprit MakeCulprit(const JobState& job, int32_t process, int32_t rank, const Member* member);

// " for 12 s"; "" if the beginning is unknown.
std::string SinceInWords(int64_t since_ns, int64_t now_ns);

}  // namespace rollcall
