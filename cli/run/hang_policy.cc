// SPDX-License-Identifier: Apache-2.0
#include "cli/run/hang_policy.h"

#include <algorithm>

#include "base/durations.h"

namespace rollcall {
namespace {

// Three ticks of an agent, plus the delay of a loaded machine.
constexpr int64_t kFreshNs = kSecond;
// Of stacks, which are taken every few seconds. What moves meanwhile withdraws the verdict by
// ticks.
constexpr int64_t kFreshStacksNs = 5 * kSecond;
// For causes that need no long wait: a rank is gone, or ranks contradict each other.
constexpr int64_t kStandsStillNs = 2 * kSecond;

bool NeedsNoWait(const std::string& cause) {
  for (const char* at_once : {"operation_mismatch", "argument_mismatch", "rank_exited", "rank_died",
                              "nccl_error", "concurrent_use"}) {
    if (cause == at_once) return true;
  }
  return false;
}

// A lost host sends no fresh evidence. The evidence that the others wait is fresh.
bool IsFresh(const Finding& finding) {
  const int64_t fresh_ns = finding.cause == "standstill" ? kFreshStacksNs : kFreshNs;
  return finding.evidence_age_ns <= fresh_ns || finding.cause == "host_lost";
}

}  // namespace

std::string WhyNotAct(const Finding& finding, const LocalStandstill& local, int64_t hang_after_ns) {
  if (finding.certainty != "certain" && finding.certainty != "likely") {
    return "the verdict is only " + finding.certainty;
  }
  if (!IsFresh(finding)) return "the data of a host is out of date";
  if (local.is_of_other_job) {
    return "no communicator of the hung job is on this host, so another job of this name may hang";
  }
  if (!local.is_needed) return "";
  const int64_t needed =
      NeedsNoWait(finding.cause) ? std::min(kStandsStillNs, hang_after_ns) : hang_after_ns;
  if (local.ns >= needed) return "";
  return "the segments of this host do not yet confirm that its ranks are stuck";
}

}  // namespace rollcall
