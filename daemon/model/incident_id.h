// SPDX-License-Identifier: Apache-2.0
// The ids of incidents: "[<tenant>:]<job>[.<attempt>]-<n>". Pure.
#pragma once

#include <string>

#include "daemon/model/job_key.h"

namespace rollcall {

// The name of a job is free text and may look like the rest of an id: each ':' in it is written
// twice, and so are the dots before digits at its end ("llama.1" becomes "llama..1"). So an even
// number of colons or dots belongs to the name, and an odd one separates. Names of tenants have no
// colon, and the last '-' separates n, which has none.
inline std::string JobInIncidentId(const std::string& job) {
  const size_t digits = job.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  const size_t dots = job.find_last_not_of('.', digits - 1) + 1;
  std::string escaped;
  for (size_t i = 0; i < job.size(); ++i) {
    const bool is_twice = job[i] == ':' || (i >= dots && i < digits);
    escaped.append(is_twice ? 2 : 1, job[i]);
  }
  return escaped;
}

// Differs for each attempt of each job of each tenant.
inline std::string IncidentIdPrefix(const JobKey& job) {
  const std::string tenant = job.tenant == kDefaultTenant ? "" : job.tenant + ":";
  const std::string attempt = job.attempt == 0 ? "" : "." + std::to_string(job.attempt);
  return tenant + JobInIncidentId(job.job) + attempt + "-";
}

}  // namespace rollcall
