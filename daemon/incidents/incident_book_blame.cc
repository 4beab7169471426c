// SPDX-License-Identifier: Apache-2.0
// What the incident book holds against hosts, for their agents.
#include <optional>

#include "base/mutex.h"
#include "daemon/diagnosis/hosts/host_blame.h"
#include "daemon/incidents/incident_book.h"

namespace rollcall {
namespace {

constexpr int kMostPids = 64;

v1::HostHangs::Hang BlamedHangOf(const v1::Incident& incident, const Verdict& verdict,
                                 const HostBlame& blame) {
  v1::HostHangs::Hang hang;
  hang.set_incident(incident.id());
  hang.set_tenant(incident.tenant());
  hang.set_job(incident.job());
  hang.set_cause(CauseName(verdict.cause));
  hang.set_is_broken(blame.is_broken);
  if (incident.verdicts().empty()) return hang;
  hang.set_summary(incident.verdicts(0).summary());
  for (const v1::Culprit& culprit : incident.verdicts(0).culprits()) {
    if (hang.pids_size() < kMostPids && culprit.pid() != 0) hang.add_pids(culprit.pid());
    if (hang.gpus_size() < kMostPids && !culprit.gpu_uuid().empty()) {
      hang.add_gpus(culprit.gpu_uuid());
    }
  }
  return hang;
}

}  // namespace

HangsByHost IncidentBook::BlamedHosts() const {
  HangsByHost hangs;
  const MutexLock lock(mutex_);
  for (const auto& [key, job] : jobs_) {
    const auto& live = job.life.live();
    if (!live || live->is_stored || live->state != IncidentState::kConfirmed) continue;
    if (options_.ownership != nullptr && !options_.ownership->MayAlert(key)) continue;
    const std::optional<HostBlame> blame = BlameHost(live->verdicts.front());
    const Record& newest = job.records.back();
    if (!blame.has_value() || newest.incident.id() != live->id || newest.is_over_quota) continue;
    hangs[blame->host].push_back(BlamedHangOf(newest.incident, live->verdicts.front(), *blame));
  }
  return hangs;
}

}  // namespace rollcall
