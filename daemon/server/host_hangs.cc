// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/host_hangs.h"

#include <algorithm>

#include "daemon/model/verdict.h"

namespace rollcall {
namespace {

bool SpeaksAgainstHost(const std::string& cause) {
#define X(name, text) \
  if (cause == (text)) return rollcall::SpeaksAgainstHost(Cause::name);
  ROLLCALL_CAUSES(X)
#undef X
  return false;
}

// "": the verdict blames none, or several.
std::string OnlyHost(const v1::Verdict& verdict) {
  if (verdict.culprits().empty() || verdict.culprit_hosts_total() > 1) return "";
  const std::string& host = verdict.culprits(0).host();
  const bool is_only = std::all_of(verdict.culprits().begin(), verdict.culprits().end(),
                                   [&](const v1::Culprit& other) { return other.host() == host; });
  return is_only ? host : "";
}

bool Counts(const v1::Incident& incident) {
  if (!incident.has_confirmed_at() || incident.has_closed_at() || incident.verdicts().empty()) {
    return false;
  }
  const v1::Verdict& verdict = incident.verdicts(0);
  return SpeaksAgainstHost(verdict.cause()) &&
         verdict.certainty() != CertaintyName(Certainty::kPossible);
}

v1::HostHangs::Hang HangOf(const v1::Incident& incident) {
  const v1::Verdict& verdict = incident.verdicts(0);
  v1::HostHangs::Hang hang;
  hang.set_incident(incident.id());
  hang.set_tenant(incident.tenant());
  hang.set_job(incident.job());
  hang.set_cause(verdict.cause());
  hang.set_certainty(verdict.certainty());
  hang.set_summary(verdict.summary());
  for (const v1::Culprit& culprit : verdict.culprits()) {
    if (!culprit.gpu_uuid().empty()) hang.add_gpus(culprit.gpu_uuid());
  }
  return hang;
}

}  // namespace

std::map<std::string, v1::HostHangs> HangsByHost(const std::vector<v1::Incident>& incidents) {
  std::map<std::string, v1::HostHangs> hangs;
  for (const v1::Incident& incident : incidents) {
    if (!Counts(incident)) continue;
    const std::string host = OnlyHost(incident.verdicts(0));
    if (host.empty()) continue;
    v1::HostHangs& of_host = hangs[host];
    if (of_host.hangs_size() < kMostHangsOfHost) *of_host.add_hangs() = HangOf(incident);
  }
  return hangs;
}

}  // namespace rollcall
