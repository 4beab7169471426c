// SPDX-License-Identifier: Apache-2.0
#include "cli/run/hang_action.h"

#include <spdlog/spdlog.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "cli/run/hang_policy.h"
#include "cli/run/job_environment.h"
#include "daemon/daemon.h"

namespace rollcall {
namespace {

constexpr size_t kExecPrefix = 5;  // "exec:"

}  // namespace

HangAction::HangAction(const RunFlags& flags, const InheritedSignals& inherited,
                       std::unique_ptr<LocalProgress> local, std::function<void()> abort)
    : on_hang_(flags.on_hang),
      hang_after_ns_(flags.judging.limits().hang_after_ns),
      inherited_(inherited),
      local_(std::move(local)),
      abort_(std::move(abort)) {}

std::string HangAction::WhyNotActOn(const ConfirmedIncident& incident) const {
  LocalStandstill local;
  // An ended job has no ranks to check.
  local.is_needed = local_ != nullptr && !incident.is_over;
  if (local.is_needed) {
    local.ns = local_->StandsStillFor(incident.ranks, incident.communicator, MonotonicNs());
  }
  local.is_of_other_job = local_ != nullptr && !incident.shares_communicator;
  return WhyNotAct(incident.finding, local, hang_after_ns_);
}

void HangAction::ActIfDue(const ConfirmedIncident& incident) {
  if (acted_on_.count(incident.id) != 0) return;
  const bool abort = on_hang_ == "abort";
  if (abort && incident.is_over) return;
  const std::string why_not = WhyNotActOn(incident);
  if (!why_not.empty()) {
    if (held_back_.insert(incident.id).second) {
      spdlog::info("--on-hang={} does not act yet: {}", abort ? "abort" : "exec", why_not);
    }
    return;
  }
  if (abort && incident.has_failed && IsLeftToLauncher(incident)) return;
  acted_on_.insert(incident.id);
  if (abort) return abort_();
  Execute(incident);
}

void HangAction::Execute(const ConfirmedIncident& incident) const {
  const Spawned spawned = Spawn({"/bin/sh", "-c", on_hang_.substr(kExecPrefix)},
                                EnvironmentWith({{"ROLLCALL_INCIDENT", incident.id},
                                                 {"ROLLCALL_REPORT", incident.report_path},
                                                 {"ROLLCALL_SUMMARY", incident.summary}}),
                                inherited_);
  if (spawned.pid < 0) {
    spdlog::error("--on-hang=exec: cannot run /bin/sh: {}", strerror(spawned.error));
  }
}

// When a rank has failed, its launcher gets some time to end or restart the other ranks.
bool HangAction::IsLeftToLauncher(const ConfirmedIncident& incident) {
  const Limits limits = LimitsFor(hang_after_ns_);
  const int64_t patience_ns = std::min(limits.hang_after_ns, limits.absent_for_good_ns);
  const int64_t now_ns = MonotonicNs();
  const int64_t until_ns = now_ns + patience_ns - incident.waited_ns;
  return now_ns < left_to_launcher_.emplace(incident.id, until_ns).first->second;
}

}  // namespace rollcall
