// How a job fell whose launcher ended it before anybody had waited for long:
// torchrun kills all ranks a moment after the first one has failed.
//
// Pure, like the rules: the job is taken as it was when only those that failed
// first were gone, and judged by the same rules.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Verdicts that blame the ranks that failed first, on communicators of which all
// members have ended. Empty: they have not, nobody failed, it cannot be told who
// did so first, or nobody waited for them. Communicators that were judged are
// added to `judged`, and passed over if they stand in it: a restarted job has
// those of its earlier lives too.
std::vector<Verdict> JudgeTheEnd(const JobState& job, std::set<uint64_t>* judged);

}  // namespace rollcall
