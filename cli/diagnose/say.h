// SPDX-License-Identifier: Apache-2.0
// What `rollcall diagnose` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/looks/judge.h"

namespace rollcall {

struct SayOptions {
  bool reports_kept = false;  // --report-dir was given
  std::string again;          // the command as it was typed: "rollcall diagnose 4121"
};

// For people: the finding on each job that hangs or is unclear, with what to do now, what the look
// could not see, and how to see it the next time. A line for all that goes on.
std::string SayJobs(const std::vector<LookedAtJob>& jobs, const std::vector<v1::HostLook>& looks,
                    const SayOptions& options);

// 3: a job hangs; else 2: one is unclear; else 0.
int ExitCodeOf(const std::vector<LookedAtJob>& jobs, const std::vector<v1::HostLook>& looks);

}  // namespace rollcall
