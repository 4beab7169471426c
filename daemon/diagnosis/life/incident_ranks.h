// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a job, or of an incident, have ended, are heard of, and still wait. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

bool HasEnded(const JobState& state, int32_t process);

// Counts only processes that have used NCCL or wait for ranks in torch's store, once the job has a
// communicator: data-loader workers come and go. `from`: index of the first process to count.
size_t CountEndedRanks(const JobState& state, size_t from = 0);

// The ranks that have not ended and on which no fresh reports arrive.
std::vector<int32_t> UnheardRanks(const JobState& state);

// Counts those of `unheard` that are reported as ended and may have ended by `by_ns`: their agent
// has not seen them alive since. Removes them, and all others that are reported again.
size_t TakeEndedBy(const JobState& state, int64_t by_ns, std::vector<int32_t>* unheard);

// True if all ranks have ended in good order.
bool HaveAllExited(const JobState& state);

// True if all processes have ended. A lost host never reports the end of its processes: it counts
// when it has been silent for `lost_for_good_ns`, and hosts that report show that the job has ended
// there.
bool HasJobEnded(const JobState& state, int64_t now_ns, int64_t lost_for_good_ns);

// False if no report arrives on any waiting rank, so no evidence shows that they make progress.
bool AnyWaiterIsHeard(const JobState& state, const std::vector<Verdict>& verdicts);

// True if a rank of the verdict waits in the same call, by a count that began after the incident
// was opened: its agent was restarted and counts the waits on its host anew. Until the count is
// long enough there is no verdict.
bool IsCountedAnew(const JobState& state, const Verdict& verdict, int64_t opened_ns);

// True if a culprit of the verdict has ended and a rank of the verdict still waits in the same
// call. There is no verdict on the end yet: it needs some seconds, because the ranks of a job that
// ends leave one by one.
bool AwaitsVerdictOnEnd(const JobState& state, const Verdict& verdict);

}  // namespace rollcall
