// SPDX-License-Identifier: Apache-2.0
// Sentences about evidence: the activity of processes, and the evidence that is missing.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/progress.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// "stopped by a signal (state T)", "inside CommDestroy for 12 s", ...; "" if nothing is known.
// `comm`, `rank`: of a process that holds several ranks, only what this one does.
std::string DescribeActivity(const JobState& job, int32_t process, int64_t now_ns,
                             const Communicator* comm = nullptr, int32_t rank = -1);

// "exited normally", "killed by signal 9", "inside CommDestroy", ...; "" while the rank takes part.
std::string DescribeEnding(const JobState& job, int32_t process, const Member* member);

// The words of DescribeEvidence() for a wait that Rollcall sees and does not infer.
inline constexpr char kShownByMarkersOrHost[] = "shown by GPU markers or by the host thread's call";

// The evidence that the ranks wait, one line for each kind of evidence. `ranks`: those of the
// waiters, as people number them.
std::vector<std::string> DescribeEvidence(const JobState& job, const std::vector<Waiter>& waiters,
                                          const std::vector<int32_t>& ranks,
                                          const std::string& call);

// The evidence that is missing to prove that the ranks wait.
std::vector<std::string> DescribeMissing(const JobState& job, const std::vector<Waiter>& waiters,
                                         const std::vector<int32_t>& ranks);

// Returns a culprit with all known facts about its process.
Culprit MakeCulprit(const JobState& job, int32_t process, int32_t rank, const Member* member);

// " for 12 s"; "" if the time is unknown.
std::string SinceInWords(int64_t since_ns, int64_t now_ns);

}  // namespace rollcall
