// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/earlier_owners.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "base/clean_text.h"
#include "daemon/history/postgres_history.h"

namespace rollcall {
namespace {

constexpr int kMostReads = 10;                // of one job, at most one in each step
constexpr std::chrono::seconds kMostWait{3};  // for the database: meanwhile no lease is renewed

absl::StatusOr<Continuation> LoadFromDatabase(const FleetOptions& options, const JobId& job,
                                              std::unique_ptr<History>* history) {
  if (*history == nullptr) {
    PostgresOptions database = options.database;
    database.times.connect = std::min(database.times.connect, kMostWait);
    database.times.answer = std::min(database.times.answer, kMostWait);
    auto opened = PostgresHistory::Open(database, options.limits);
    if (!opened.ok()) return opened.status();
    *history = *std::move(opened);
  }
  auto loaded = (*history)->LoadJob(job);
  if (loaded.ok()) return loaded;
  *history = nullptr;
  // An error of another kind passes: a slow database has the data, and the job must wait for them.
  if (absl::IsInvalidArgument(loaded.status()))
    return absl::DataLossError(loaded.status().message());
  return loaded.status();
}

}  // namespace

EarlierOwners::Load EarlierOwners::FromDatabase(const FleetOptions& options) {
  return [options, history = std::make_shared<std::unique_ptr<History>>()](const JobId& job) {
    return LoadFromDatabase(options, job, history.get());
  };
}

absl::StatusOr<Continuation> EarlierOwners::Read(const JobId& job, bool* is_lost) {
  auto earlier = load_(job);
  *is_lost = absl::IsDataLoss(earlier.status()) && GivesUp(job, earlier.status());
  if (*is_lost) earlier = Continuation();
  if (earlier.ok()) unreadable_.erase(job);
  return earlier;
}

// What the database has of this job is unusable. The other jobs must not wait for it, and this one
// not for ever.
bool EarlierOwners::GivesUp(const JobId& job, const absl::Status& status) {
  const int tries = ++unreadable_[job];
  if (tries == 1 || tries == kMostReads) {
    spdlog::error("cannot read job {} from the database: {}{}", CleanText(job.job),
                  std::string(status.message()),
                  tries == 1 ? "; trying again" : "; going on without it");
  }
  return tries >= kMostReads;
}

}  // namespace rollcall
