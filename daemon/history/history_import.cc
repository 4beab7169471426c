// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_import.h"

#include <map>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/history/history_write.h"
#include "daemon/history/postgres_history.h"

namespace rollcall {
namespace {

constexpr int64_t kPage = 500;
constexpr int64_t kBatch = 50;  // incidents in one transaction

class Import {
 public:
  Import(const History& from, PostgresHistory* to, const ImportProgress& progress)
      : from_(from), to_(to), progress_(progress) {}

  absl::StatusOr<ImportCounts> Run() {
    absl::StatusOr<Continuation> rest = from_.Load();
    if (!rest.ok()) return rest.status();
    for (AlertRow& alert : rest->alerts) {
      alerts_[alert.incident].push_back(std::move(alert));
    }
    absl::Status status = CopyIncidents();
    if (status.ok()) status = CopyJobs(*rest);
    if (status.ok()) status = CopySilences(rest->silences);
    if (!status.ok()) return status;
    return counts_;
  }

 private:
  absl::Status CopyIncidents() {
    v1::HistoryQuery::Incidents query;
    query.set_limit(kPage);
    for (;; query.set_offset(query.offset() + kPage)) {
      const auto page = from_.Ask(query);
      if (!page.ok()) return page.status();
      for (int first = 0; first < page->incidents_size(); first += kBatch) {
        const absl::Status status = CopyBatch(*page, first);
        if (!status.ok()) return status;
        if (progress_) progress_(counts_);
      }
      if (page->incidents_size() < kPage) return absl::OkStatus();
    }
  }

  absl::Status CopyBatch(const v1::ListIncidentsResponse& page, int first) {
    const ImportCounts before = counts_;
    absl::Status status = to_->Begin();
    for (int i = first; status.ok() && i < page.incidents_size() && i < first + kBatch; ++i) {
      status = CopyIncident(page.incidents(i));
    }
    status = to_->End(status);
    if (!status.ok()) counts_ = before;
    return status;
  }

  absl::Status CopyIncident(const v1::Incident& listed) {
    const auto known = to_->Get(listed.id());
    if (known.ok()) {
      const bool is_same = known->opened_at().seconds() == listed.opened_at().seconds() &&
                           known->opened_at().nanos() == listed.opened_at().nanos();
      if (is_same) {
        ++counts_.known;
      } else {
        counts_.clashes.push_back(listed.id());
      }
      return absl::OkStatus();
    }
    if (!absl::IsNotFound(known.status())) return known.status();
    const auto incident = from_.Get(listed.id());
    if (!incident.ok()) return incident.status();
    absl::Status status = to_->Apply(WriteOfIncident(*incident));
    for (const AlertRow& alert : alerts_[listed.id()]) {
      if (status.ok()) status = CopyAlert(alert);
    }
    ++counts_.incidents;
    return status;
  }

  absl::Status CopyAlert(const AlertRow& alert) {
    absl::Status status = to_->Apply(WriteOfAlert(alert));
    for (const std::string& receiver : alert.receivers) {
      if (!status.ok()) break;
      status = to_->Apply(WriteOfAlertMark(alert.incident, alert.sequence, receiver));
    }
    return status;
  }

  // Copies all of it or nothing: what is there of a job counts as another daemon's.
  absl::Status CopyJobs(const Continuation& rest) {
    const ImportCounts before = counts_;
    absl::Status status = to_->Begin();
    if (status.ok()) status = CopyNewJobs(rest);
    status = to_->End(status);
    if (!status.ok()) counts_ = before;
    return status;
  }

  // A job in the database belongs to a daemon there.
  absl::Status CopyNewJobs(const Continuation& rest) {
    std::set<JobKey> jobs;
    for (const auto& [job, hosts] : rest.hosts) jobs.insert(job);
    for (const auto& [job, facts] : rest.attempts) jobs.insert(job);
    const int64_t now_ns = absl::ToUnixNanos(absl::Now());
    std::map<JobId, bool> is_new;
    for (const JobKey& job : jobs) {
      const auto [at, first] = is_new.try_emplace(job, false);
      if (first) {
        const auto known = to_->LoadJob(job);
        if (!known.ok()) return known.status();
        at->second = known->hosts.empty() && known->attempts.empty();
      }
      if (!at->second) continue;
      absl::Status status;
      const auto hosts = rest.hosts.find(job);
      if (hosts != rest.hosts.end()) {
        status =
            to_->Apply(WriteOfHosts(job, {hosts->second.begin(), hosts->second.end()}, now_ns));
      }
      const auto facts = rest.attempts.find(job);
      if (status.ok() && facts != rest.attempts.end()) {
        status = to_->Apply(WriteOfAttempts({*facts}, now_ns));
      }
      if (!status.ok()) return status;
      ++counts_.jobs;
    }
    return absl::OkStatus();
  }

  absl::Status CopySilences(const std::vector<v1::Silence>& silences) {
    const auto known = to_->Ask(v1::ListSilencesRequest());
    if (!known.ok()) return known.status();
    std::set<std::string> ids;
    for (const v1::Silence& silence : known->silences()) ids.insert(silence.id());
    for (const v1::Silence& silence : silences) {
      if (ids.count(silence.id()) != 0) continue;
      const absl::Status status = to_->Apply(WriteOfSilence(silence));
      if (!status.ok()) return status;
      ++counts_.silences;
    }
    return absl::OkStatus();
  }

  const History& from_;
  PostgresHistory* const to_;
  const ImportProgress& progress_;
  std::map<std::string, std::vector<AlertRow>> alerts_;  // by incident
  ImportCounts counts_;
};

}  // namespace

absl::StatusOr<ImportCounts> ImportHistory(const History& from, PostgresHistory* to,
                                           const ImportProgress& progress) {
  return Import(from, to, progress).Run();
}

}  // namespace rollcall
