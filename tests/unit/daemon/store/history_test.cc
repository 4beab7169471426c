// SPDX-License-Identifier: Apache-2.0
// The history of incidents in real files.
#include "daemon/store/history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86400 * kSecond;

v1::Incident Incident(const std::string& job, int number, int64_t opened_s, const std::string& host,
                      int rank = 3, const std::string& cause = "missing_rank") {
  v1::Incident incident;
  incident.set_id(absl::StrCat(job, "-", number));
  incident.set_job(job);
  incident.set_state("resolved");
  incident.mutable_opened_at()->set_seconds(opened_s);
  incident.mutable_closed_at()->set_seconds(opened_s + 60);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause(cause);
  verdict->set_summary("it hung");
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_host(host);
  culprit->set_rank(rank);
  incident.add_stacks()->set_pid(4711);
  incident.mutable_stack_tree()->add_nodes()->set_threads(9);
  return incident;
}

class HistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-history-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<History> Open(const HistoryLimits& limits = {}) const {
    auto history = History::Open(folder_ / "history.db", limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }

  fs::path folder_;
};

std::vector<std::string> Ids(const History& history, const v1::ListIncidentsRequest& request = {}) {
  std::vector<std::string> ids;
  const auto list = history.List(request);
  EXPECT_TRUE(list.ok()) << list.status();
  for (const v1::Incident& incident : list->incidents()) ids.push_back(incident.id());
  return ids;
}

TEST_F(HistoryTest, IsThereAfterARestart) {
  ASSERT_TRUE(Open()->Save(Incident("train", 7, 1000, "node-1")).ok());
  const auto history = Open();
  const auto kept = history->Get("train-7");
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->verdicts(0).summary(), "it hung");
  EXPECT_EQ(kept->stacks(0).pid(), 4711);
  EXPECT_EQ(kept->stack_tree().nodes(0).threads(), 9);
  EXPECT_EQ(history->LastNumber("train"), 7);
  EXPECT_EQ(history->LastNumber("other"), 0);
  EXPECT_FALSE(history->Get("train-8").has_value());
}

TEST_F(HistoryTest, PutsTheNewerInThePlaceOfTheOlder) {
  const auto history = Open();
  v1::Incident incident = Incident("train", 1, 1000, "node-1");
  ASSERT_TRUE(history->Save(incident).ok());
  incident.set_state("confirmed");
  incident.mutable_verdicts(0)->mutable_culprits(0)->set_host("node-2");
  ASSERT_TRUE(history->Save(incident).ok());
  EXPECT_EQ(Ids(*history).size(), 1u);
  v1::ListIncidentsRequest of_first;
  of_first.set_host("node-1");
  EXPECT_TRUE(Ids(*history, of_first).empty());
}

TEST_F(HistoryTest, FiltersAndPages) {
  const auto history = Open();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(history
                    ->Save(Incident(i % 2 == 0 ? "even" : "odd", i, 1000 * i,
                                    absl::StrCat("node-", i % 3), i,
                                    i == 4 ? "rank_died" : "missing_rank"))
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

TEST_F(HistoryTest, TakesNoTextForSql) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("'; DROP TABLE incidents; --", 1, 1000, "\" OR 1=1")).ok());
  v1::ListIncidentsRequest request;
  request.set_host("\" OR 1=1");
  EXPECT_EQ(Ids(*history, request).size(), 1u);
  request.set_host("' OR '1'='1");
  EXPECT_TRUE(Ids(*history, request).empty());
}

TEST_F(HistoryTest, PointsOutWhatComesAgainAndAgain) {
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("a", 1, 1000, "node-1", 3)).ok());
  ASSERT_TRUE(history->Save(Incident("a", 2, 2000, "node-1", 3)).ok());
  ASSERT_TRUE(history->Save(Incident("b", 1, 3000, "node-1", 5)).ok());
  ASSERT_TRUE(history->Save(Incident("b", 2, 4000, "node-2", 6)).ok());
  const auto list = history->List({});
  ASSERT_EQ(list->repeated_size(), 2);
  EXPECT_EQ(list->repeated(0).host(), "node-1");
  EXPECT_EQ(list->repeated(0).incidents(), 3);
  EXPECT_EQ(list->repeated(1).job(), "a");
  EXPECT_EQ(list->repeated(1).rank(), 3);
  EXPECT_EQ(list->repeated(1).incidents(), 2);
}

TEST_F(HistoryTest, ForgetsWhatIsTooOldOrTooMuch) {
  HistoryLimits limits;
  limits.keep_ns = 10 * kDay;
  limits.keep_bytes = 400'000;
  const auto history = Open(limits);
  ASSERT_TRUE(history->Save(Incident("old", 1, 0, "node-1")).ok());
  for (int i = 1; i <= 100; ++i) {
    v1::Incident incident = Incident("new", i, 20 * 86400 + i, "node-1");
    incident.mutable_stacks(0)->set_error(std::string(10'000, 'x'));
    ASSERT_TRUE(history->Save(incident).ok());
  }
  ASSERT_TRUE(history->Trim(20 * kDay + 200 * kSecond).ok());
  EXPECT_FALSE(history->Get("old-1").has_value());
  EXPECT_FALSE(history->Get("new-1").has_value());
  EXPECT_TRUE(history->Get("new-100").has_value());
  EXPECT_LT(Ids(*history).size(), 45u);
  EXPECT_GT(Ids(*history).size(), 20u);
}

TEST_F(HistoryTest, PutsADamagedFileAsideAndBeginsANewOne) {
  std::ofstream(folder_ / "history.db") << std::string(10'000, 'x');
  const auto history = Open();
  ASSERT_TRUE(history->Save(Incident("train", 1, 1000, "node-1")).ok());
  int aside = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    aside += entry.path().string().find(".damaged-") != std::string::npos;
  }
  EXPECT_EQ(aside, 1);
}

TEST_F(HistoryTest, SaysWhyAFileCannotBeUsed) {
  const auto history = History::Open(folder_ / "none" / "history.db", {});
  ASSERT_FALSE(history.ok());
  EXPECT_NE(std::string(history.status().message()).find("--history=FILE"), std::string::npos);
}

TEST_F(HistoryTest, EndsWhatWasLiveWhenADaemonEnded) {
  v1::Incident incident = Incident("train", 1, 1000, "node-1");
  incident.set_state("confirmed");
  incident.clear_closed_at();
  ASSERT_TRUE(Open()->Save(incident).ok());
  EXPECT_EQ(Open()->Get("train-1")->state(), "ended");
}

}  // namespace
}  // namespace rollcall
