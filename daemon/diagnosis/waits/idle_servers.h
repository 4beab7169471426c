// SPDX-License-Identifier: Apache-2.0
// Servers that wait for requests: a rank that sends the others their work when a request comes.
// They wait in its next call until then, and nothing hangs.
#pragma once

#include <string>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Whether all culprits are such servers without a request at work, and owe only the call that the
// others wait in: then the verdict is possible at most, and no incident is confirmed for it.
void WeighIdleServers(const JobState& job, Verdict* verdict);

}  // namespace rollcall
