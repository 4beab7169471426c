// SPDX-License-Identifier: Apache-2.0
// The ids of incidents: "[<tenant>:]<job>[.<attempt>]-<n>". Pure.
#pragma once

#include <algorithm>
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

// The job of such an id. Of any other text: a job that does not exist.
inline JobId JobOfIncidentId(const std::string& id) {
  std::string text = id.substr(0, id.rfind('-'));
  JobId job;
  const size_t colon = text.find(':');
  if (colon != std::string::npos &&
      (std::min(text.find_first_not_of(':', colon), text.size()) - colon) % 2 == 1) {
    job.tenant = text.substr(0, colon);
    text.erase(0, colon + 1);
  }
  // The dots before the digits at the end: an odd one belongs to the number of the attempt.
  size_t digits = text.find_last_not_of("0123456789") + 1;
  size_t dots = digits == 0 ? 0 : text.find_last_not_of('.', digits - 1) + 1;
  if (digits < text.size() && (digits - dots) % 2 == 1) {
    text.erase(digits - 1);
    digits = text.find_last_not_of("0123456789") + 1;
    dots = digits == 0 ? 0 : text.find_last_not_of('.', digits - 1) + 1;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    job.job += text[i];
    const bool is_twice = text[i] == ':' || (i >= dots && i < digits);
    if (is_twice) ++i;
  }
  return job;
}

}  // namespace rollcall
