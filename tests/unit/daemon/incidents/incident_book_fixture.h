// SPDX-License-Identifier: Apache-2.0
// A job that hangs, and daemons one after the other on the same history, for the tests of the
// incident book.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/read_file.h"
#include "daemon/agents/stack_request.h"
#include "daemon/alerts/alert_target.h"
#include "daemon/history/history.h"
#include "daemon/history/sqlite_history.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/incidents/incident_quota.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/ownership.h"
#include "daemon/jobs/timeline.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/job_key.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "eventually.h"
#include "rollcall/v1/incident.pb.h"
#include "temporary_tree.h"

namespace rollcall {

// A job with one process on node-1, whose agent has settled.
inline JobState RunningJob() {
  JobState state;
  state.key = JobKey("train");
  AgentState& agent = state.agents.emplace_back();
  agent.id = "agent-1";
  agent.host = "node-1";
  agent.is_settled = true;
  Process process;
  process.host = "node-1";
  process.pid = 7;
  process.liveness = Liveness::kAlive;
  state.processes.push_back(process);
  return state;
}

// A hang that no time limit delays.
inline std::vector<Verdict> Hang() {
  Verdict verdict;
  verdict.cause = Cause::kMissingRank;
  verdict.communicator = 0xa91f;
  verdict.position = 11;
  verdict.at_once = true;
  verdict.summary = "rank 3 has not called AllReduce";
  verdict.waiting_processes = {0};
  return {verdict};
}

// The same, of this rank, whose process is on node-1.
inline std::vector<Verdict> HangOf(int32_t rank) {
  std::vector<Verdict> verdicts = Hang();
  Culprit culprit;
  culprit.process = 0;
  culprit.rank = rank;
  culprit.host = "node-1";
  culprit.pid = 7;
  verdicts[0].culprits = {culprit};
  return verdicts;
}

// The confirmed incident as an earlier daemon saved it.
inline v1::Incident Confirmed() {
  v1::Incident incident;
  incident.set_id("train-1");
  incident.set_job("train");
  incident.set_state("confirmed");
  incident.mutable_opened_at()->set_seconds(1000);
  incident.mutable_confirmed_at()->set_seconds(1001);
  incident.set_report_path("/reports/train-1");
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->mutable_communicator()->set_id("a91f");
  verdict->mutable_call()->set_position(11);
  return incident;
}

// The text of a file; "" if there is none.
inline std::string ReadAll(const std::string& path) { return ReadFile(path).value_or(""); }

// Whose the job is, as the test says.
class OwnershipOfTest : public JobOwnership {
 public:
  bool Owns(const JobId&) const override { return owns; }
  bool MayAlert(const JobId&) const override { return owns && !is_unproven; }
  int64_t TokenOf(const JobId&) const override { return 1; }
  bool IsUnproven(const JobId&) const override { return is_unproven; }
  FleetJobs CountJobs() const override { return {}; }

  bool owns = true, is_unproven = false;
};

class IncidentBookTest : public testing::Test {
 protected:
  std::unique_ptr<History> OpenHistory() const {
    auto history = SqliteHistory::Open(path_, {});
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }
  // A daemon begins. Its alerts go to a command that reads them only.
  std::unique_ptr<IncidentBook> Begin() {
    IncidentBookOptions options;
    options.history.path = path_;
    options.report_dir = report_dir_;
    if (!alert_command_.empty()) {
      options.alerts.targets = {{AlertKind::kCommand, alert_command_}};
    }
    options.quota = quota_;
    options.alert_waits_ns = alert_waits_ns_;
    options.remind_every_ns = remind_every_ns_;
    options.log_incidents = false;
    options.ownership = &ownership_;
    options.history.is_unproven = [this](const JobId& job) { return ownership_.IsUnproven(job); };
    auto book = std::make_unique<IncidentBook>(options, &timeline_, &counters_);
    EXPECT_TRUE(book->Start().ok());
    return book;
  }
  std::vector<StackRequest> Apply(std::vector<Verdict> verdicts, IncidentBook* book) {
    return book->Apply(RunningJob(), std::move(verdicts), timeline_.Now());
  }
  // A hang is confirmed and is over a moment later, `times` times. `is_other`: of another rank each
  // time.
  void Flap(int times, IncidentBook* book, bool is_other = false) {
    for (int i = 0; i < times; ++i) {
      flap_ns_ += 10'000'000'000;
      book->Apply(RunningJob(), is_other ? HangOf(next_rank_++) : Hang(), flap_ns_);
      book->Apply(RunningJob(), {}, flap_ns_ + 1'000'000'000);
      book->Apply(RunningJob(), {}, flap_ns_ + 3'000'000'000);
    }
  }
  // The number of the newest incident in the history.
  int LastStored() const { return OpenHistory()->LastNumbers().value()[JobKey("train")]; }
  uint64_t CountDropped(Dropped what) const {
    return counters_.Get().dropped[static_cast<size_t>(what)];
  }
  static bool Sends(uint64_t alerts, const IncidentBook& book) {
    return Eventually([&] { return book.reader().CountDeliveries().alerts_sent == alerts; });
  }
  // Alerts that were sent or wait.
  static uint64_t CountAlerts(const IncidentBook& book) {
    const DeliveryCounts counts = book.reader().CountDeliveries();
    return counts.alerts_sent + counts.alerts_waiting + counts.alerts_failed;
  }

  const AllThreadsEnd threads_;
  const TemporaryTree tree_;
  const std::string path_ = tree_.root() + "/history.db";
  std::string report_dir_;
  std::string alert_command_ = "cat > /dev/null";
  IncidentQuotaLimits quota_;
  int64_t alert_waits_ns_ = 0, remind_every_ns_ = 0;
  int32_t next_rank_ = 0;
  OwnershipOfTest ownership_;
  DaemonCounters counters_;
  Timeline timeline_;
  int64_t flap_ns_ = timeline_.Now();
};

}  // namespace rollcall
