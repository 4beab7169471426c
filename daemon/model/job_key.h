// SPDX-License-Identifier: Apache-2.0
// The identity of a job: whose it is, its name, and which start of it this is.
//
// Attempts of one job share nothing: no communicator, process or verdict.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

namespace rollcall {

inline constexpr char kDefaultTenant[] = "default";

// A job with all its attempts.
struct JobId {
  std::string tenant = kDefaultTenant;
  std::string job;
  bool operator<(const JobId& other) const {
    return std::tie(tenant, job) < std::tie(other.tenant, other.job);
  }
  bool operator==(const JobId& other) const { return tenant == other.tenant && job == other.job; }
};

struct JobKey : JobId {
  JobKey() = default;
  explicit JobKey(std::string name, int32_t number = 0) : attempt(number) { job = std::move(name); }
  JobKey(JobId name, int32_t number) : JobId(std::move(name)), attempt(number) {}

  int32_t attempt = 0;
  bool operator<(const JobKey& other) const {
    return std::tie(tenant, job, attempt) < std::tie(other.tenant, other.job, other.attempt);
  }
  bool operator==(const JobKey& other) const {
    return JobId::operator==(other) && attempt == other.attempt;
  }
  bool operator!=(const JobKey& other) const { return !(*this == other); }
};

// Words the key for people: "train", "team/train" where the tenant is not the default one.
inline std::string ToText(const JobId& name) {
  return name.tenant == kDefaultTenant ? name.job : name.tenant + "/" + name.job;
}

// Words the key for people: "train", "train attempt 2".
inline std::string ToText(const JobKey& key) {
  const std::string name = ToText(static_cast<const JobId&>(key));
  return key.attempt == 0 ? name : name + " attempt " + std::to_string(key.attempt);
}

}  // namespace rollcall
