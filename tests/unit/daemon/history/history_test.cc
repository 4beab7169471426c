// SPDX-License-Identifier: Apache-2.0
// What every history promises, on a real file of SQLite and on a real server of PostgreSQL.
#include "daemon/history/history.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "daemon/history/history_write.h"
#include "daemon/history/incident_groups.h"
#include "daemon/history/postgres_history.h"
#include "daemon/history/sqlite_history.h"
#include "histories.h"
#include "postgres_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

enum class Store { kSqlite, kPostgres };

class HistoryTest : public testing::TestWithParam<Store> {
 protected:
  void SetUp() override {
    if (GetParam() == Store::kSqlite) return;
    if (!TestServer()->problem().empty()) GTEST_SKIP() << TestServer()->problem();
  }

  std::unique_ptr<History> Open(const HistoryLimits& limits = {}) const {
    if (GetParam() == Store::kSqlite) return Opened(SqliteHistory::Open(file(), limits));
    // A schema for each test; the path of its folder is unlike all others.
    const std::string schema = "t" + absl::StrCat(fs::hash_value(folder_));
    return Opened(PostgresHistory::Open({TestServer()->Url(schema), "daemon-1", {}, ""}, limits));
  }
  fs::path file() const { return folder_ / "history.db"; }

  const TemporaryTree tree_;
  const fs::path folder_ = tree_.root();

 private:
  template <typename Opening>
  static std::unique_ptr<History> Opened(Opening history) {
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, HistoryTest, testing::Values(Store::kSqlite, Store::kPostgres),
                         [](const testing::TestParamInfo<Store>& store) {
                           return store.param == Store::kSqlite ? "Sqlite" : "Postgres";
                         });

TEST_P(HistoryTest, SurvivesARestart) {
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(Incident("train", 7, 1000, "node-1"))).ok());
  const auto history = Open();
  const auto kept = history->Get("train-7");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->verdicts(0).summary(), "it hung");
  EXPECT_EQ(kept->stacks(0).pid(), 4711);
  EXPECT_EQ(kept->stack_tree().nodes(0).threads(), 9);
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 7);
  EXPECT_EQ(LastNumber(*history, {"default", "other"}), 0);
  EXPECT_FALSE(history->Get("train-8").ok());
}

TEST_P(HistoryTest, ReplacesAnOlderState) {
  const auto history = Open();
  v1::Incident incident = Incident("train", 1, 1000, "node-1");
  ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  incident.set_state("confirmed");
  incident.mutable_verdicts(0)->mutable_culprits(0)->set_host("node-2");
  ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  EXPECT_EQ(Ids(*history).size(), 1u);
  v1::ListIncidentsRequest of_first;
  of_first.set_host("node-1");
  EXPECT_TRUE(Ids(*history, of_first).empty());
}

TEST_P(HistoryTest, FiltersAndPages) {
  const auto history = Open();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(history
                    ->Apply(WriteOfIncident(Incident(i % 2 == 0 ? "even" : "odd", i, 1000 * i,
                                                     absl::StrCat("node-", i % 3), i,
                                                     i == 4 ? "rank_died" : "missing_rank")))
                    .ok());
  }
  v1::ListIncidentsRequest request;
  request.set_job("even");
  EXPECT_EQ(Ids(*history, request),
            (std::vector<std::string>{"even-8", "even-6", "even-4", "even-2", "even-0"}));
  request.set_cause("rank_died");
  EXPECT_EQ(Ids(*history, request), std::vector<std::string>{"even-4"});
  request.Clear();
  request.set_host("node-0");
  request.set_limit(2);
  request.set_offset(1);
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"even-6", "odd-3"}));
  EXPECT_EQ(history->List(request)->total(), 4);
  request.Clear();
  request.mutable_from()->set_seconds(7000);
  request.mutable_until()->set_seconds(8000);
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"even-8", "odd-7"}));
  EXPECT_EQ(history->List(request)->incidents(0).stacks_size(), 0);
}

TEST_P(HistoryTest, DoesNotRunTextAsSql) {
  const auto history = Open();
  ASSERT_TRUE(
      history->Apply(WriteOfIncident(Incident("'; DROP TABLE incidents; --", 1, 1000, "\" OR 1=1")))
          .ok());
  v1::ListIncidentsRequest request;
  request.set_host("\" OR 1=1");
  EXPECT_EQ(Ids(*history, request).size(), 1u);
  request.set_host("' OR '1'='1");
  EXPECT_TRUE(Ids(*history, request).empty());
}

TEST_P(HistoryTest, ReportsRepeatedCulprits) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("a", 1, 1000, "node-1", 3))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("a", 2, 2000, "node-1", 3))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("b", 1, 3000, "node-1", 5))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("b", 2, 4000, "node-2", 6))).ok());
  const auto list = history->List({});
  ASSERT_EQ(list->repeated_size(), 2);
  EXPECT_EQ(list->repeated(0).host(), "node-1");
  EXPECT_EQ(list->repeated(0).incidents(), 3);
  EXPECT_EQ(list->repeated(1).job(), "a");
  EXPECT_EQ(list->repeated(1).rank(), 3);
  EXPECT_EQ(list->repeated(1).incidents(), 2);
}

TEST_P(HistoryTest, RanksOfTwoTenantsJobsAreNotOneRank) {
  const auto history = Open();
  for (const char* tenant : {"", "team"}) {
    v1::Incident incident = Incident("a", 1, 1000, "");
    incident.set_id(absl::StrCat(tenant, ":a-1"));
    incident.set_tenant(tenant);
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  }
  EXPECT_EQ(history->List({})->repeated_size(), 0);
  v1::Incident again = Incident("a", 2, 2000, "");
  again.set_id("team:a-2");
  again.set_tenant("team");
  ASSERT_TRUE(history->Apply(WriteOfIncident(again)).ok());
  const auto list = history->List({});
  ASSERT_EQ(list->repeated_size(), 1);
  EXPECT_EQ(list->repeated(0).job(), "a");
  EXPECT_EQ(list->repeated(0).tenant(), "team");
}

TEST_P(HistoryTest, FiltersByTenantAndAttempt) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("job", 1, 1000, "node-1"))).ok());
  v1::Incident other = Incident("job", 2, 2000, "node-1");
  other.set_tenant("lab");
  other.set_attempt(3);
  ASSERT_TRUE(history->Apply(WriteOfIncident(other)).ok());
  v1::ListIncidentsRequest request;
  request.set_tenant("lab");
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"job-2"}));
  request.set_attempt(0);
  EXPECT_TRUE(Ids(*history, request).empty());
  request.clear_tenant();
  EXPECT_EQ(Ids(*history, request), (std::vector<std::string>{"job-1"}));
  request.set_attempt(3);
  request.set_tenant("default");
  EXPECT_TRUE(Ids(*history, request).empty());
}

TEST_P(HistoryTest, FindsHostsOfCulpritsThatTheIncidentDoesNotList) {
  const auto history = Open();
  for (const int number : {1, 2}) {
    v1::Incident incident = Incident("job", number, 1000 + number, "node-1");
    incident.mutable_verdicts(0)->add_other_culprit_hosts("node-2000");
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  }
  v1::ListIncidentsRequest request;
  request.set_host("node-2000");
  EXPECT_EQ(Ids(*history, request).size(), 2u);
  const auto list = history->List({});
  ASSERT_TRUE(list.ok());
  int times = 0;
  for (const v1::Repeated& repeated : list->repeated()) {
    if (repeated.host() == "node-2000") times = repeated.incidents();
  }
  EXPECT_EQ(times, 2);
}

TEST_P(HistoryTest, DeletesOldAndExcessIncidents) {
  HistoryLimits limits;
  limits.keep_ns = 10 * kDay;
  limits.keep_bytes = 400'000;
  const auto history = Open(limits);
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("old", 1, 0, "node-1"))).ok());
  for (int i = 1; i <= 100; ++i) {
    v1::Incident incident = Incident("new", i, 20 * 86400 + i, "node-1");
    incident.mutable_stacks(0)->set_error(Noise(10'000));
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  }
  ASSERT_TRUE(history->Trim(20 * kDay + 200 * kSecond).ok());
  EXPECT_FALSE(history->Get("old-1").ok());
  EXPECT_FALSE(history->Get("new-1").ok());
  EXPECT_TRUE(history->Get("new-100").ok());
  EXPECT_LT(Ids(*history).size(), 45u);
  EXPECT_GT(Ids(*history).size(), 20u);
}

TEST_P(HistoryTest, OtherTablesLeaveRoomForIncidents) {
  HistoryLimits limits;
  limits.keep_bytes = 2'000'000;
  const auto history = Open(limits);
  const int64_t now_ns = 20 * kDay;
  AttemptFacts facts;
  for (int i = 0; i < 1000; ++i) facts.members.push_back({{"node", i, 1}, i});
  for (int i = 1; i <= 50; ++i) {
    v1::Incident incident = Incident("train", i, 20 * 86400 - 100 + i, "node-1");
    incident.mutable_stacks(0)->set_error(std::string(10'000, 'x'));
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
    ASSERT_TRUE(
        history->Apply(WriteOfAction({now_ns - 100 + i, "me", std::string(100'000, 'y'), "", ""}))
            .ok());
    ASSERT_TRUE(history->Apply(WriteOfAttempts({{JobKey("train", i), facts}}, now_ns + i)).ok());
  }
  ASSERT_TRUE(history->Trim(now_ns).ok());
  EXPECT_EQ(Ids(*history).size(), 50u);
  const auto kept = history->Load();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_GT(kept->attempts.count(JobKey("train", 50)), 0u) << "the newest";
  EXPECT_LT(kept->attempts.size(), 10u);
  if (GetParam() == Store::kSqlite) {
    EXPECT_LT(fs::file_size(file()), 2'000'000u);
  }
}

TEST_P(HistoryTest, TheAttemptOfALivingJobStaysHoweverManyBeganLater) {
  HistoryLimits limits;
  limits.keep_bytes = 2'000'000;
  const auto history = Open(limits);
  const int64_t now_ns = 20 * kDay;
  AttemptFacts facts;
  for (int i = 0; i < 1000; ++i) facts.members.push_back({{"node", i, 1}, i});
  ASSERT_TRUE(history->Apply(WriteOfAttempts({{JobKey("long"), facts}}, now_ns - 6 * kDay)).ok());
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(history->Apply(WriteOfAttempts({{JobKey("short", i), facts}}, now_ns - i)).ok());
  }
  ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("long"), {"node"}, now_ns)).ok());
  ASSERT_TRUE(history->Trim(now_ns).ok());
  const auto kept = history->Load();
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->attempts.count(JobKey("long")), 1u);
  EXPECT_EQ(kept->attempts.at(JobKey("long")).members.size(), 1000u);
  EXPECT_EQ(kept->attempts.count(JobKey("short", 20)), 0u) << "the oldest of those that have ended";
}

TEST_P(HistoryTest, KeepsOpenIncidentsOpenAcrossARestart) {
  ASSERT_TRUE(Open()->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
  const auto history = Open();
  EXPECT_EQ(history->Get("train-1")->state(), "confirmed");
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->open.size(), 1u);
  EXPECT_EQ(loaded->open[0].id(), "train-1");
  EXPECT_EQ(loaded->open[0].stacks(0).pid(), 4711);
}

TEST_P(HistoryTest, KeepsAlertsAndTheReceiversThatGotThem) {
  {
    const auto history = Open();
    ASSERT_TRUE(history->Apply(WriteOfIncident(OpenIncident("train", 1))).ok());
    ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 2, 1000, "node-1"))).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlert(Alert("train-1", 1, "confirmed"))).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-1", 1, "")).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlert(Alert("train-1", 2, "updated"))).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-1", 2, "json:1")).ok());
    for (const char* kind : {"confirmed", "resolved"}) {
      const int sequence = kind == std::string("confirmed") ? 1 : 2;
      ASSERT_TRUE(history->Apply(WriteOfAlert(Alert("train-2", sequence, kind))).ok());
      ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-2", sequence, "")).ok());
    }
  }
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->alerts.size(), 2u) << "all alerts of train-2 are sent, and it is closed";
  EXPECT_TRUE(loaded->alerts[0].sent);
  EXPECT_EQ(loaded->alerts[1].kind, "updated");
  EXPECT_FALSE(loaded->alerts[1].sent);
  EXPECT_EQ(loaded->alerts[1].receivers, std::set<std::string>{"json:1"});
  EXPECT_EQ(loaded->alerts[1].body.id(), "train-1");
}

TEST_P(HistoryTest, AnUnsentNoteIsUnsentUntilItIsMarked) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  int32_t sequence = 0;
  for (const char* kind : {"confirmed", "annotated", "resolved"}) {
    ASSERT_TRUE(history->Apply(WriteOfAlert(Alert("train-1", ++sequence, kind))).ok());
    const char* const receiver = sequence == 2 ? "json:1" : "";
    ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-1", sequence, receiver)).ok());
  }
  ASSERT_TRUE(history->Trim(2001 * kSecond).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->alerts.size(), 3u);
  EXPECT_FALSE(loaded->alerts[1].sent);
  EXPECT_EQ(loaded->alerts[1].receivers, std::set<std::string>{"json:1"});
  EXPECT_EQ(history->LoadJob({"default", "train"})->alerts.size(), 3u);
  ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-1", 2, "")).ok());
  EXPECT_TRUE(history->Load()->alerts.empty());
}

// The daemon ended after it saved the end of the incident and before it saved that alert.
TEST_P(HistoryTest, LoadsTheAlertsOfAClosedIncidentThatLackItsEnd) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 1, 1000, "node-1"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfAlert(Alert("train-1", 1, "confirmed"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-1", 1, "")).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->alerts.size(), 1u);
  EXPECT_EQ(loaded->alerts[0].incident, "train-1");
}

TEST_P(HistoryTest, KeepsTheHostsOfEachAttemptUntilTheyAreForgotten) {
  JobKey second("train", 1);
  second.tenant = "team";
  {
    const auto history = Open();
    ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("train"), {"a", "b"}, 5)).ok());
    ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("train"), {"b", "c"}, 6)).ok());
    ASSERT_TRUE(history->Apply(WriteOfHosts(second, {"d"}, 6)).ok());
    ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("old"), {"e"}, 6)).ok());
    ASSERT_TRUE(history->Apply(WriteOfForgottenHosts(JobKey("old"))).ok());
  }
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->hosts, (std::map<JobKey, std::set<std::string>>{
                               {JobKey("train"), {"a", "b", "c"}}, {second, {"d"}}}));
}

TEST_P(HistoryTest, LoadsConfirmedIncidentsThatAreClosedOnlyOfJobsThatMayReturn) {
  v1::Incident ended = Incident("train", 1, 1000, "node-1");
  *ended.mutable_confirmed_at() = ended.opened_at();
  v1::Incident other = ended;
  other.set_id("other-1");
  other.set_job("other");
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(ended)).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(other)).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 2, 1000, "node-1"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("train"), {"a"}, 5)).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->closed.size(), 1u);
  EXPECT_EQ(loaded->closed[0].id(), "train-1");
}

// What a daemon needs that takes one job over.
TEST_P(HistoryTest, LoadsOneJobWithAllItsAttempts) {
  const auto history = Open();
  v1::Incident ended = Incident("train", 4, 1000, "node-1");
  *ended.mutable_confirmed_at() = ended.opened_at();
  v1::Incident open = OpenIncident("train", 7, 2000);
  open.set_attempt(2);
  v1::Incident foreign = OpenIncident("train", 9, 2000);
  foreign.set_id("lab:train-9");
  foreign.set_tenant("lab");
  for (const v1::Incident& incident : {ended, open, foreign, OpenIncident("other", 3, 2000)}) {
    ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlert(Alert(incident.id(), 1, "confirmed"))).ok());
  }
  ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-7", 1, "json:1")).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("train", 2, 500, "node-1"))).ok());
  for (const int sequence : {1, 2}) {
    const AlertRow settled = Alert("train-2", sequence, sequence == 1 ? "confirmed" : "resolved");
    ASSERT_TRUE(history->Apply(WriteOfAlert(settled)).ok());
    ASSERT_TRUE(history->Apply(WriteOfAlertMark("train-2", sequence, "")).ok());
  }
  JobKey second("train", 2), of_lab("train", 2);
  of_lab.tenant = "lab";
  AttemptFacts facts = {8, "", "1000 node-1:29500", false, {{{"a", 7, 1}, 3}}};
  for (const JobKey& job : {JobKey("train"), second, of_lab, JobKey("other")}) {
    ASSERT_TRUE(history->Apply(WriteOfHosts(job, {"a", "b"}, 5)).ok());
    ASSERT_TRUE(history->Apply(WriteOfAttempts({{job, facts}}, 5)).ok());
  }

  const auto loaded = history->LoadJob({"default", "train"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->open.size(), 1u);
  EXPECT_EQ(loaded->open[0].id(), "train-7");
  EXPECT_EQ(loaded->open[0].stacks(0).pid(), 4711);
  ASSERT_EQ(loaded->closed.size(), 1u);
  EXPECT_EQ(loaded->closed[0].id(), "train-4");
  ASSERT_EQ(loaded->alerts.size(), 2u) << "that of train-4 lacks its end, train-2 is settled";
  EXPECT_EQ(loaded->alerts[1].incident, "train-7");
  EXPECT_EQ(loaded->alerts[1].receivers, std::set<std::string>{"json:1"});
  EXPECT_EQ(loaded->hosts, (std::map<JobKey, std::set<std::string>>{{JobKey("train"), {"a", "b"}},
                                                                    {second, {"a", "b"}}}));
  ASSERT_EQ(loaded->attempts.size(), 2u);
  ASSERT_EQ(loaded->attempts.at(second).members.size(), 1u);
  EXPECT_EQ(loaded->attempts.at(second).members[0].rank, 3);
  EXPECT_EQ(loaded->last_number, 7);
  EXPECT_EQ(history->LoadJob({"lab", "train"})->last_number, 9);

  const auto none = history->LoadJob({"default", "unknown"});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->open.empty() && none->hosts.empty() && none->attempts.empty());
  EXPECT_EQ(none->last_number, 0);
}

TEST_P(HistoryTest, NumbersIncidentsOfEachTenantSeparately) {
  v1::Incident incident = Incident("train", 7, 1000, "node-1");
  incident.set_tenant("team");
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(incident)).ok());
  EXPECT_EQ(LastNumber(*history, {"team", "train"}), 7);
  EXPECT_EQ(LastNumber(*history, {"default", "train"}), 0);
}

TEST_P(HistoryTest, DeletesAlertsThatNoDaemonNeeds) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(OpenIncident("open", 1))).ok());
  for (const char* id : {"open-1", "closed-1", "unsent-1"}) {
    ASSERT_TRUE(history->Apply(WriteOfAlert(Alert(id, 1, "confirmed"))).ok());
    if (id == std::string("unsent-1")) continue;
    ASSERT_TRUE(history->Apply(WriteOfAlertMark(id, 1, "")).ok());
  }
  ASSERT_TRUE(history->Trim(2000 * kSecond + 2 * 3600 * kSecond).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<std::string> left;
  for (const AlertRow& alert : loaded->alerts) left.push_back(alert.incident);
  EXPECT_EQ(left, (std::vector<std::string>{"open-1", "unsent-1"}));
}

TEST_P(HistoryTest, KeepsAttemptsAndTheirMembersUntilTheyAreForgotten) {
  JobKey second("train", 1);
  second.tenant = "team";
  AttemptFacts facts = {8, "SLURM_RESTART_COUNT=1", "1000 node-1:29500", true, {}};
  facts.members = {{{"a", 7, UINT64_MAX}, 0}};
  {
    const auto history = Open();
    ASSERT_TRUE(history->Apply(WriteOfAttempts({{second, facts}, {JobKey("old"), facts}}, 5)).ok());
    facts.members = {{{"b", 8, 2}, 1}};
    ASSERT_TRUE(history->Apply(WriteOfAttempts({{second, facts}}, 6)).ok());
    ASSERT_TRUE(history->Apply(WriteOfForgottenAttempt(JobKey("old"))).ok());
  }
  const auto loaded = Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->attempts.size(), 1u);
  const auto& [key, kept] = *loaded->attempts.begin();
  EXPECT_EQ(key, second);
  EXPECT_EQ(kept.world_size, 8);
  EXPECT_EQ(kept.restarts, "SLURM_RESTART_COUNT=1");
  EXPECT_EQ(kept.launch, "1000 node-1:29500");
  EXPECT_TRUE(kept.has_twin);
  ASSERT_EQ(kept.members.size(), 2u);
  EXPECT_EQ(kept.members[0].process.start_time, UINT64_MAX);
  EXPECT_EQ(kept.members[1].process.host, "b");
  EXPECT_EQ(kept.members[1].rank, 1);
}

TEST_P(HistoryTest, DeletesAttemptsOfJobsThatNoDaemonHasSeenForAWeek) {
  constexpr int64_t kDay = int64_t{86400} * 1'000'000'000;
  AttemptFacts facts;
  facts.members = {{{"a", 7, 1}, 0}};
  const auto history = Open();
  ASSERT_TRUE(
      history->Apply(WriteOfAttempts({{JobKey("gone"), facts}, {JobKey("lives"), facts}}, kDay))
          .ok());
  ASSERT_TRUE(history->Apply(WriteOfHosts(JobKey("lives"), {"a"}, 9 * kDay)).ok());
  ASSERT_TRUE(history->Trim(9 * kDay).ok());
  const auto loaded = history->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->attempts.size(), 1u);
  EXPECT_EQ(loaded->attempts.begin()->first, JobKey("lives"));
  EXPECT_EQ(loaded->attempts.begin()->second.members.size(), 1u);
}

TEST_P(HistoryTest, GroupsAlikeHangsAndCountsWhatComesBack) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Confirmed(1, 100, "node-17", "aa"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Confirmed(2, 200, "node-17", "bb"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Confirmed(3, 300, "node-3", "cc"))).ok());
  v1::Incident other = Confirmed(4, 400, "node-3", "dd");
  other.mutable_verdicts(0)->set_cause("rank_died");
  ASSERT_TRUE(history->Apply(WriteOfIncident(other)).ok());
  v1::Incident suspected = Confirmed(5, 500, "node-17", "ee");
  suspected.clear_confirmed_at();
  ASSERT_TRUE(history->Apply(WriteOfIncident(suspected)).ok());

  const v1::ListIncidentsResponse list = Groups(*history);
  EXPECT_EQ(list.total(), 2);
  ASSERT_EQ(list.groups_size(), 2);
  const v1::IncidentGroup& first = list.groups(0);
  EXPECT_EQ(first.signature(), "missing_rank/AllReduce//");
  EXPECT_EQ(first.hangs(), 3);
  EXPECT_EQ(first.first().seconds(), 100);
  EXPECT_EQ(first.last().seconds(), 300);
  EXPECT_EQ(first.newest(), "train-3");
  ASSERT_EQ(first.hosts_size(), 2);
  EXPECT_EQ(first.hosts(0).name(), "node-17");
  EXPECT_EQ(first.hosts(0).hangs(), 2);
  ASSERT_EQ(first.ranks_size(), 1);
  EXPECT_EQ(first.ranks(0).name(), "3");
  EXPECT_EQ(first.ranks(0).hangs(), 3);
  ASSERT_EQ(first.jobs_size(), 1);
  EXPECT_EQ(first.sentence(), "3 times, 2 times with a culprit on node-17");
}

TEST_P(HistoryTest, CountsOneHangOnceHoweverManyIncidentsItHad) {
  const auto history = Open();
  for (int number = 1; number <= 3; ++number) {
    ASSERT_TRUE(
        history->Apply(WriteOfIncident(Confirmed(number, 100 * number, "node-17", "aa"))).ok());
  }
  const v1::ListIncidentsResponse list = Groups(*history);
  ASSERT_EQ(list.groups_size(), 1);
  EXPECT_EQ(list.groups(0).hangs(), 1);
  EXPECT_EQ(list.groups(0).hosts(0).hangs(), 1);
  EXPECT_TRUE(Groups(*history, {}, HangOf(Confirmed(1, 0, "", "aa"))).groups().empty());
}

TEST_P(HistoryTest, GroupsOnlyWhatTheRequestSelects) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Confirmed(1, 100, "node-17", "aa"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Confirmed(2, 200, "node-3", "bb"))).ok());
  v1::Incident secret = Confirmed(3, 300, "node-17", "cc");
  secret.set_tenant("lab");
  ASSERT_TRUE(history->Apply(WriteOfIncident(secret)).ok());

  v1::ListIncidentsRequest request;
  request.add_tenants("default");
  EXPECT_EQ(Groups(*history, request).groups(0).hangs(), 2);
  request.mutable_from()->set_seconds(150);
  ASSERT_EQ(Groups(*history, request).groups_size(), 1);
  EXPECT_EQ(Groups(*history, request).groups(0).newest(), "train-2");
  request.set_signature("rank_died///");
  EXPECT_TRUE(Groups(*history, request).groups().empty());

  EXPECT_EQ(Groups(*history).groups_size(), 2) << "tenants are not mixed";
  v1::ListIncidentsRequest page;
  page.set_limit(1);
  page.set_offset(1);
  EXPECT_EQ(Groups(*history, page).groups_size(), 1);
  EXPECT_EQ(Groups(*history, page).total(), 2);
}

TEST_P(HistoryTest, FindsTheIncidentsOfASignature) {
  const auto history = Open();
  ASSERT_TRUE(history->Apply(WriteOfIncident(Confirmed(1, 100, "node-17", "aa"))).ok());
  ASSERT_TRUE(history->Apply(WriteOfIncident(Incident("other", 1, 200, "node-17"))).ok());
  v1::ListIncidentsRequest request;
  request.set_signature("missing_rank/AllReduce//");
  EXPECT_EQ(Ids(*history, request), std::vector<std::string>{"train-1"});
}

}  // namespace
}  // namespace rollcall
