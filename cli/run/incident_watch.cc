// SPDX-License-Identifier: Apache-2.0
#include "cli/run/incident_watch.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/link/daemon_names.h"
#include "base/clean_text.h"
#include "base/monotonic_clock.h"
#include "base/whole_numbers.h"
#include "cli/run/own_attempts.h"
#include "daemon/access/clean_message.h"
#include "daemon/daemon.h"
#include "daemon/history/history.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/incidents/report_queue.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/report_text.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

// If a report takes longer, `rollcall run` prints the incident without it.
constexpr int64_t kAnswerIsOldNs = 2'000'000'000;
constexpr int64_t kAskEveryNs = 300'000'000;
// All queries to the daemon in one look: the caller also serves the job and its signals.
constexpr std::chrono::seconds kAnswersWithin{1};
constexpr std::chrono::seconds kLastAnswersWithin{2};
constexpr std::chrono::milliseconds kIncidentsWithin{500};  // the first query
// the daemon merges what it has as soon as it can
constexpr int64_t kMergedWithinNs = 2'000'000'000;
constexpr int64_t kWithoutReportNs = 3'000'000'000;  // then prints why there is no report
constexpr std::chrono::seconds kLastReportsWithin{6};

ReportQueueOptions WriteTo(const std::string& report_dir) {
  ReportQueueOptions options;
  options.report_dir = report_dir;
  return options;
}

ConfirmedIncident Summarize(const v1::Incident& incident) {
  const v1::Verdict& root = incident.verdicts(0);
  ConfirmedIncident confirmed;
  confirmed.id = incident.id();
  confirmed.job = ReadJobKey(incident);
  confirmed.summary = root.summary();
  confirmed.report_path = incident.report_path();
  confirmed.is_over = incident.has_closed_at();
  confirmed.has_failed = root.cause() == "rank_exited" || root.cause() == "rank_died";
  confirmed.waited_ns = NsOfSeconds(root.waited_seconds());
  confirmed.finding = {root.cause(), root.certainty(), NsOfSeconds(root.evidence_age_seconds())};
  confirmed.ranks = InvolvedRanks(root);
  if (!absl::SimpleHexAtoi(root.communicator().id(), &confirmed.communicator)) {
    confirmed.communicator = 0;
  }
  return confirmed;
}

class EmbeddedWatch : public IncidentWatch {
 public:
  EmbeddedWatch(const Daemon* daemon, std::string job, bool reports)
      : IncidentWatch(reports), daemon_(daemon), job_(std::move(job)) {}

 protected:
  std::optional<std::vector<v1::Incident>> Fetch(bool /*last*/) override {
    return daemon_->GetIncidents(job_);
  }
  // The embedded daemon has no other job.
  bool SharesCommunicator(const JobKey& /*job*/) override { return true; }

 private:
  const Daemon* const daemon_;
  const std::string job_;
};

class RemoteWatch : public IncidentWatch {
 public:
  RemoteWatch(std::string address, Connect connect, std::string job, const std::string& directory,
              const std::string& host, const std::string& report_dir)
      : IncidentWatch(true),
        address_(std::move(address)),
        daemons_(SplitDaemons(address_).size()),
        connect_(std::move(connect)),
        stub_(v1::Query::NewStub(connect_())),
        job_(std::move(job)),
        own_(stub_.get(), directory, host),
        reports_here_(WriteTo(report_dir)) {}

 protected:
  std::optional<std::vector<v1::Incident>> Fetch(bool last) override {
    if (MonotonicNs() < next_ns_ && !last) return std::nullopt;
    next_ns_ = MonotonicNs() + kAskEveryNs;
    const SteadyTime now = std::chrono::steady_clock::now();
    const SteadyTime deadline = now + (last ? kLastAnswersWithin : kAnswersWithin);
    std::optional<std::vector<v1::Incident>> incidents = Ask(now + kIncidentsWithin);
    // No later look shows whether the daemon is away.
    if (!incidents.has_value() && last && is_cut_) incidents = Ask(now + 2 * kIncidentsWithin);
    if (incidents.has_value()) {
      DropOthers(last, deadline, &*incidents);
      newest_ = *incidents;
    } else if (last) {
      incidents = newest_;  // may hold confirmed incidents that waited for their reports
    }
    if (incidents.has_value()) {
      for (const v1::Incident& incident : *incidents) WriteHere(incident, last);
    }
    if (last) reports_here_.Finish(std::chrono::steady_clock::now() + kLastReportsWithin);
    for (ReportQueue::Result& written : reports_here_.DrainResults()) {
      written_[written.incident] = std::move(written);
    }
    if (incidents.has_value()) {
      for (v1::Incident& incident : *incidents) NameReport(&incident);
    }
    return incidents;
  }

  bool SharesCommunicator(const JobKey& job) override {
    return own_.Of(job) == Ownership::kByCommunicator;
  }

 private:
  // Drops the incidents of other jobs and attempts. `last`: one of an unknown attempt may be this
  // run's.
  void DropOthers(bool last, SteadyTime deadline, std::vector<v1::Incident>* incidents) {
    std::set<JobKey> attempts;
    for (const v1::Incident& incident : *incidents) {
      if (incident.has_confirmed_at()) attempts.insert(ReadJobKey(incident));
    }
    own_.Learn(attempts, deadline, last);
    const auto is_other = [this, last](const v1::Incident& incident) {
      if (!incident.has_confirmed_at()) return true;  // unused so far
      const Ownership ownership = own_.Of(ReadJobKey(incident));
      return ownership == Ownership::kNo || (ownership == Ownership::kUnknown && !last);
    };
    incidents->erase(std::remove_if(incidents->begin(), incidents->end(), is_other),
                     incidents->end());
  }

  // The incidents of jobs with this name, oldest first.
  std::optional<std::vector<v1::Incident>> Ask(SteadyTime deadline) {
    grpc::ClientContext context;
    SetDeadline(deadline, &context);
    v1::ListIncidentsRequest request;
    request.set_job(job_);
    request.set_live_only(true);
    request.set_with_stacks(true);
    v1::ListIncidentsResponse response;
    const grpc::Status status = stub_->ListIncidents(&context, request, &response);
    const bool is_away = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    // A daemon closes connections of unknown callers, and when it stops. The next query shows
    // whether it is away.
    is_cut_ = is_away && has_answered_;
    has_answered_ = !is_away;
    if (!status.ok()) {
      // Each of several daemons has all incidents.
      const bool is_worth_a_warning = !is_cut_ && ++failures_ >= daemons_;
      if (is_worth_a_warning && said_.insert(status.error_code()).second) SayProblem(status);
      const bool is_late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
      if (is_away || (is_late && daemons_ > 1)) {
        stub_ = v1::Query::NewStub(connect_());
        own_.UseStub(stub_.get());
      }
      return std::nullopt;
    }
    failures_ = 0;
    CleanStrings(&response);
    // The answer is newest first.
    std::vector<v1::Incident> incidents(response.incidents().rbegin(), response.incidents().rend());
    // An earlier run may have had the same job name. Incidents that were over when this run began
    // belong to that run.
    for (const v1::Incident& incident : incidents) {
      if (first_ && incident.has_closed_at()) earlier_.insert(incident.id());
    }
    first_ = false;
    incidents.erase(std::remove_if(incidents.begin(), incidents.end(),
                                   [this](const v1::Incident& incident) {
                                     return earlier_.count(incident.id()) > 0;
                                   }),
                    incidents.end());
    return incidents;
  }

  void SayProblem(const grpc::Status& status) const {
    if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
        status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      spdlog::warn(
          "permission denied by the daemon at {}: no verdict here, and --on-hang does not "
          "act: {}",
          address_, CleanLines(status.error_message()));
      return;
    }
    spdlog::warn("cannot reach the daemon at {}: {}\n  is it running?  pgrep -a rollcalld",
                 address_, CleanLines(status.error_message()));
  }

  // Waits a little for the stacks that the daemon has merged for its own report: they show all
  // ranks, and the message has the stacks of some.
  void WriteHere(const v1::Incident& incident, bool last) {
    if (!incident.has_confirmed_at() || put_.count(incident.id()) > 0) return;
    const bool is_merged = !incident.stack_tree().nodes().empty();
    const int64_t now_ns = MonotonicNs();
    const int64_t since_ns = waits_since_ns_.try_emplace(incident.id(), now_ns).first->second;
    if (!is_merged && !last && now_ns - since_ns < kMergedWithinNs) return;
    put_.insert(incident.id());
    v1::Incident whole = incident;
    if (!is_merged && !whole.stacks().empty()) {
      *whole.mutable_stack_tree() = MergedStacks(whole, StackTree());
    }
    reports_here_.Put(std::move(whole), "");
  }

  // Sets the path to the report that this process wrote. If it could not write the report, sets the
  // path to the daemon's own copy.
  void NameReport(v1::Incident* incident) {
    const auto at = written_.find(incident->id());
    std::string path = at == written_.end() ? "" : at->second.folder;
    const std::string note = at == written_.end()
                                 ? reports_here_.FindProblem(incident->id(), kWithoutReportNs)
                                 : at->second.note;
    if (path.empty() && !note.empty() && !incident->report_path().empty()) {
      path = absl::StrCat(address_, ":", incident->report_path());
    }
    incident->set_report_path(path);
    incident->set_report_note(note);
  }

  const std::string address_;
  const size_t daemons_;  // in it
  const Connect connect_;
  std::unique_ptr<v1::Query::Stub> stub_;
  const std::string job_;
  OwnAttempts own_;
  ReportQueue reports_here_;
  // for merged stacks, by the id of the incident
  std::map<std::string, int64_t> waits_since_ns_;
  std::set<std::string> put_;                           // ids of incidents
  std::map<std::string, ReportQueue::Result> written_;  // by the id of the incident
  std::vector<v1::Incident> newest_;                    // of the last answer
  int64_t next_ns_ = 0;                                 // of the next query, monotonic
  std::set<int> said_;                                  // codes of problems
  size_t failures_ = 0;                                 // since the last answer
  bool has_answered_ = false;                           // the daemon, the newest query
  bool is_cut_ = false;  // the daemon closed the connection at the newest query
  bool first_ = true;
  std::set<std::string> earlier_;  // ids of incidents of earlier runs
};

}  // namespace

std::unique_ptr<IncidentWatch> IncidentWatch::OfDaemon(const Daemon* daemon, std::string job,
                                                       bool reports) {
  return std::make_unique<EmbeddedWatch>(daemon, std::move(job), reports);
}

std::unique_ptr<IncidentWatch> IncidentWatch::OfDaemonAt(std::string address, Connect connect,
                                                         std::string job,
                                                         const std::string& directory,
                                                         const std::string& host,
                                                         const std::string& report_dir) {
  return std::make_unique<RemoteWatch>(std::move(address), std::move(connect), std::move(job),
                                       directory, host, report_dir);
}

bool IncidentWatch::IsDue(const v1::Incident& incident) {
  // Do not wait for a report that cannot be written: its note gives the reason.
  if (!reports_ || !incident.report_path().empty() || !incident.report_note().empty()) return true;
  const ReportWait::Step step = waits_for_report_.Next(incident.id(), MonotonicNs());
  if (step == ReportWait::Step::kTell) {
    progress_ = absl::StrCat("rollcall: a hang is confirmed (", incident.verdicts(0).cause(),
                             "); taking stacks for its report\n");
  }
  return step == ReportWait::Step::kDue;
}

std::vector<IncidentWatch::News> IncidentWatch::Look(bool last) {
  std::vector<News> all;
  const std::optional<std::vector<v1::Incident>> incidents = Fetch(last);
  const int64_t now_ns = MonotonicNs();
  if (incidents.has_value()) answered_ns_ = now_ns;
  // A daemon that no longer answers gives no reason to end a job.
  if (incidents.has_value() || now_ns - answered_ns_ > kAnswerIsOldNs) open_.clear();
  if (!incidents.has_value()) return all;
  for (const v1::Incident& incident : *incidents) {
    if (!incident.has_confirmed_at() || incident.verdicts_size() == 0) continue;
    const bool was_reported = reported_.count(incident.id()) != 0;
    if (!was_reported && !last && !IsDue(incident)) continue;
    ConfirmedIncident confirmed = Summarize(incident);
    confirmed.shares_communicator = SharesCommunicator(confirmed.job);
    if (!confirmed.is_over) open_.push_back(confirmed);
    if (was_reported) continue;
    reported_.insert(incident.id());
    const bool has_report = !incident.report_path().empty();
    all.push_back({std::move(confirmed), has_report ? IncidentLines(incident) : ToText(incident)});
  }
  return all;
}

std::string IncidentLines(const v1::Incident& incident) {
  const v1::Verdict& verdict = incident.verdicts(0);
  std::string text = absl::StrCat("rollcall: ", verdict.summary(), "\n");
  const std::string places = SitesInWords(verdict);
  if (!places.empty()) absl::StrAppend(&text, "rollcall:   ", places, "\n");
  // The terminal shows three pieces of advice. The report has all of them.
  int lines = 0;
  for (const v1::Advice& advice : verdict.advice()) {
    if (++lines > 3) break;
    absl::StrAppend(&text, "rollcall:   [", advice.id(), "] ", advice.text(), "\n");
  }
  absl::StrAppend(&text, "rollcall:   certainty: ", verdict.certainty(),
                  "; report: ", incident.report_path(), "/report.txt\n");
  return text;
}

}  // namespace rollcall
