// SPDX-License-Identifier: Apache-2.0
// Reads from the database what earlier owners of a job have found out. One thread uses it.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/fleet/fleet_options.h"
#include "daemon/history/history.h"

namespace rollcall {

class EarlierOwners {
 public:
  // Reads one job. Errors: kDataLoss (what the database has of it is unusable), others pass.
  using Load = std::function<absl::StatusOr<Continuation>(const JobId& job)>;
  static Load FromDatabase(const FleetOptions& options);

  explicit EarlierOwners(Load load) : load_(std::move(load)) {}

  // Errors as for Load. After some kDataLoss of one job it gives up: it returns nothing of the job,
  // and sets `is_lost`.
  absl::StatusOr<Continuation> Read(const JobId& job, bool* is_lost);

 private:
  bool GivesUp(const JobId& job, const absl::Status& status);

  const Load load_;
  std::map<JobId, int> unreadable_;  // how often what is known of a job was unusable
};

}  // namespace rollcall
