// SPDX-License-Identifier: Apache-2.0
// The error for a name that no job has. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/model/job_key.h"

namespace rollcall {

// Limits the jobs compared with an unknown name: each costs some microseconds.
inline constexpr size_t kMostJobsCompared = 500;

// kNotFound: names some of `jobs`, and the one that the caller may have meant. `total`: all jobs
// there are, of which `jobs` may be a part.
absl::Status NoSuchJobAmong(const std::vector<JobId>& jobs, size_t total, const std::string& asked);

}  // namespace rollcall
