// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/fleet_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/fleet/random.h"

namespace rollcall::fleet {
namespace {

constexpr int kMismatchRanks = 8;

size_t Positions(const LoadOptions& options) {
  return static_cast<size_t>((options.seconds + 60) * options.calls_per_second) + 2;
}

}  // namespace

FleetPlan::FleetPlan(const LoadOptions& options, int64_t begin_ns)
    : options_(options), begin_ns_(begin_ns), history_(Positions(options)) {
  for (int job = 0; job < options_.jobs; ++job) {
    Lane lane;
    lane.index = job;
    lane.ranks = options_.ranks;
    if (options_.hang_at > 0 && job < options_.hang_jobs) {
      lane.fault = Fault::kAbsent;
      const auto within = static_cast<int64_t>(Scramble(static_cast<uint64_t>(job)) % kSecond);
      lane.fault_ns = begin_ns_ + ToNs(options_.hang_at) + within;
    }
    AddLane(lane);
  }
  if (options_.mismatch_at <= 0) return;
  Lane lane;
  lane.index = options_.jobs;
  lane.ranks = kMismatchRanks;
  lane.fault = Fault::kMismatch;
  lane.fault_ns = begin_ns_ + ToNs(options_.mismatch_at);
  AddLane(lane);
}

void FleetPlan::AddLane(Lane lane) {
  const int number = static_cast<int>(lanes_.size());
  for (int first = 0; first < lane.ranks; first += options_.ranks_per_host) {
    seats_.push_back({number, first, std::min(options_.ranks_per_host, lane.ranks - first)});
    ++lane.hosts;
  }
  lanes_.push_back(lane);
}

int64_t FleetPlan::RunsOf(const Lane& lane) const {
  if (options_.jobs_cycle == 0) return 1;
  return std::max(0, (options_.jobs_cycle - lane.index + options_.jobs - 1) / options_.jobs);
}

int64_t FleetPlan::RunAt(int lane, int64_t now_ns) const {
  const int64_t run = (now_ns - begin_ns_) / ToNs(options_.job_seconds);
  return std::clamp<int64_t>(run, 0, RunsOf(lanes_[static_cast<size_t>(lane)]) - 1);
}

JobScript FleetPlan::ScriptOf(int lane, int64_t run) const {
  const Lane& on = lanes_[static_cast<size_t>(lane)];
  const int64_t number = on.index + run * options_.jobs;
  JobPlan plan;
  plan.name = on.fault == Fault::kMismatch ? "mismatch" : absl::StrCat("job-", number);
  plan.ranks = on.ranks;
  plan.period_ns = ToNs(1 / options_.calls_per_second);
  plan.begin_ns = begin_ns_;
  if (options_.jobs_cycle > 0) {
    plan.begin_ns += run * ToNs(options_.job_seconds);
    plan.end_ns = plan.begin_ns + ToNs(options_.job_seconds) * 9 / 10;
  }
  plan.fault = on.fault;
  plan.fault_ns = on.fault_ns + (plan.begin_ns - begin_ns_);
  plan.culprit = static_cast<int>(Scramble(static_cast<uint64_t>(number) + options_.seed) %
                                  static_cast<uint64_t>(on.ranks));
  return JobScript(plan);
}

std::vector<Hang> FleetPlan::Hangs() const {
  std::vector<Hang> hangs;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].fault == Fault::kNone) continue;
    for (int64_t run = 0; run < RunsOf(lanes_[lane]); ++run) {
      const JobScript script = ScriptOf(static_cast<int>(lane), run);
      hangs.push_back({script.plan().name, script.plan().culprit, script.HangsFromNs()});
    }
  }
  return hangs;
}

}  // namespace rollcall::fleet
