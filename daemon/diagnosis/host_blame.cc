// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/host_blame.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "daemon/diagnosis/host_fact_rules.h"

namespace rollcall {
namespace {

// The advice (host_advice.cc) for a broken part.
constexpr absl::string_view kBroken[] = {"gpu-fault", "hardware-error", "check-link", "disk-error"};

// "": none, or several.
std::string OnlyHost(const Verdict& verdict) {
  if (verdict.culprits.empty()) return "";
  const std::string& host = verdict.culprits.front().host;
  const bool is_only = std::all_of(verdict.culprits.begin(), verdict.culprits.end(),
                                   [&](const Culprit& other) { return other.host == host; });
  return is_only ? host : "";
}

bool ShowsBrokenPart(const Verdict& verdict, const std::string& host) {
  return std::any_of(verdict.host_evidence.begin(), verdict.host_evidence.end(),
                     [&](const HostEvidence& evidence) {
                       const HostFactRule& rule = RuleOf(evidence.kind);
                       return evidence.host == host && rule.weight != HostSignWeight::kContext &&
                              std::find(std::begin(kBroken), std::end(kBroken), rule.advice) !=
                                  std::end(kBroken);
                     });
}

}  // namespace

std::optional<HostBlame> BlameHost(const Verdict& verdict) {
  if (verdict.certainty == Certainty::kPossible || verdict.cause == Cause::kHostLost) {
    return std::nullopt;
  }
  HostBlame blame;
  blame.host = OnlyHost(verdict);
  if (blame.host.empty()) return std::nullopt;
  blame.is_broken = ShowsBrokenPart(verdict, blame.host);
  const bool stands_still =
      verdict.cause == Cause::kBlockedBeforeStart || verdict.cause == Cause::kStalledInFlight;
  if (!blame.is_broken && !stands_still) return std::nullopt;
  return blame;
}

}  // namespace rollcall
