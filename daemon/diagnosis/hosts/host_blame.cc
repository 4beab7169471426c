// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/host_blame.h"

#include <algorithm>
#include <iterator>

namespace rollcall {
namespace {

// What no program causes, and no busy network. A program causes some Xids, and retransmissions are
// usual.
constexpr HostFactKind kBroken[] = {HostFactKind::kLinkDown, HostFactKind::kIbPort,
                                    HostFactKind::kNicError, HostFactKind::kGpuLost,
                                    HostFactKind::kGpuEcc};

// Empty if there is none, or several.
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
                       return evidence.host == host &&
                              std::find(std::begin(kBroken), std::end(kBroken), evidence.kind) !=
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
