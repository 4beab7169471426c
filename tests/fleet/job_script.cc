// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/job_script.h"

#include <algorithm>
#include <utility>

#include "tests/fleet/load_options.h"
#include "tests/fleet/random.h"

namespace rollcall::fleet {
namespace {

constexpr int64_t kLatestArrival = 2 * kMillisecond;

// Positions whose calls are due before `time_ns`.
uint64_t DueBefore(const JobPlan& plan, int64_t time_ns) {
  if (time_ns <= plan.begin_ns) return 0;
  return static_cast<uint64_t>((time_ns - plan.begin_ns + plan.period_ns - 1) / plan.period_ns);
}

uint64_t LastPosition(const JobPlan& plan) {
  uint64_t last = UINT64_MAX;
  if (plan.fault != Fault::kNone) last = DueBefore(plan, plan.fault_ns);
  if (plan.end_ns != 0) last = std::min(last, DueBefore(plan, plan.end_ns - plan.period_ns));
  return last;
}

}  // namespace

JobScript::JobScript(JobPlan plan) : plan_(std::move(plan)), last_(LastPosition(plan_)) {}

int64_t JobScript::EnteredNs(int rank, uint64_t position) const {
  const int64_t spread_ns = std::min(kLatestArrival, plan_.period_ns / 4);
  const uint64_t key = static_cast<uint64_t>(rank) << 40 ^ position;
  return plan_.begin_ns + static_cast<int64_t>(position) * plan_.period_ns +
         static_cast<int64_t>(Scramble(key) % static_cast<uint64_t>(spread_ns));
}

uint64_t JobScript::EnteredBy(int rank, int64_t now_ns) const {
  const uint64_t due = DueBefore(plan_, now_ns);
  return due > 0 && EnteredNs(rank, due - 1) > now_ns ? due - 1 : due;
}

uint64_t JobScript::FinishedBy(int64_t now_ns) const {
  return DueBefore(plan_, now_ns - plan_.period_ns / 2);
}

uint64_t JobScript::MostEntered(int rank, bool world) const {
  if (!world || plan_.fault == Fault::kNone) return last_;
  return plan_.fault == Fault::kAbsent && rank == plan_.culprit ? last_ : last_ + 1;
}

Standing JobScript::At(int rank, bool world, int64_t now_ns) const {
  Standing standing;
  standing.entered = std::min(EnteredBy(rank, now_ns), MostEntered(rank, world));
  standing.finished = std::min({FinishedBy(now_ns), last_, standing.entered});
  if (standing.entered > standing.finished) {
    standing.waiting_since_ns = EnteredNs(rank, standing.finished);
  }
  return standing;
}

bool JobScript::IsOtherCall(int rank, bool world, uint64_t position) const {
  return world && plan_.fault == Fault::kMismatch && rank == plan_.culprit && position == last_;
}

int64_t JobScript::HangsFromNs() const {
  int64_t first_ns = INT64_MAX;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    if (rank != plan_.culprit) first_ns = std::min(first_ns, EnteredNs(rank, last_));
  }
  return first_ns;
}

}  // namespace rollcall::fleet
