// SPDX-License-Identifier: Apache-2.0
// What the book does without a history, or with one that becomes readable only later.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/history/history.h"
#include "daemon/history/history_write.h"
#include "daemon/history/sqlite_history.h"
#include "daemon/incidents/incident_book.h"
#include "eventually.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

IncidentBookOptions WithUnreadableHistory(const std::string& folder) {
  IncidentBookOptions options;
  options.history.path = folder + "/missing/history.db";
  options.history.is_optional = true;
  options.log_incidents = false;
  return options;
}

// An earlier daemon may have known hosts that this one has not heard yet.
TEST_F(IncidentBookTest, NothingIsConfirmedAtFirstWhereTheHistoryIsNotReadable) {
  IncidentBook book(WithUnreadableHistory(tree_.root()), &timeline_);
  ASSERT_TRUE(book.Start().ok());
  Apply(Hang(), &book);
  EXPECT_TRUE(book.reader().All("train").empty());
  EXPECT_TRUE(book.NeedsDiagnosis(JobKey("train")));
}

// Two daemons without a history. The first rank of two reports: the other one's host may be late.
TEST_F(IncidentBookTest, ClaimsNothingCertainOfAnEarlierJobUntilAllItsRanksReport) {
  IncidentBookOptions options;
  options.log_incidents = false;
  const auto certainty = [&](int32_t world_size, int64_t began_ns) {
    IncidentBook book(options, &timeline_);
    EXPECT_TRUE(book.Start().ok());
    JobState state = RunningJob();
    state.processes[0].global_rank = 0;
    state.processes[0].world_size = world_size;
    std::vector<Verdict> verdicts = Hang();
    verdicts[0].certainty = Certainty::kCertain;
    book.Apply(state, verdicts, timeline_.Now(), began_ns);
    const auto all = book.reader().All("train");
    return all.size() == 1 ? all[0].verdicts(0).certainty() : "no incident";
  };
  EXPECT_EQ(certainty(2, timeline_.Now() - 3600'000'000'000), "likely");
  EXPECT_EQ(certainty(1, timeline_.Now() - 3600'000'000'000), "certain") << "all have reported";
  EXPECT_EQ(certainty(2, timeline_.Now()), "certain") << "no earlier daemon had the job";
}

// The history is unusable at the start. Its file comes later, with incidents of an earlier daemon.
class LateHistoryTest : public IncidentBookTest {
 protected:
  // Returns the history of the earlier daemon, with one incident.
  std::unique_ptr<History> MakeEarlier() {
    std::filesystem::create_directory(ready_);
    v1::Incident old = Confirmed();
    old.set_id("train-7");
    old.set_state("resolved");
    // Young enough for the history to keep it.
    old.mutable_opened_at()->set_seconds(timeline_.ToWallTime(timeline_.Now()) / 1'000'000'000);
    *old.mutable_closed_at() = old.opened_at();
    auto history = SqliteHistory::Open(ready_ + "/history.db", {});
    EXPECT_TRUE(history.ok() && (*history)->Apply(WriteOfIncident(old)).ok());
    return *std::move(history);
  }
  std::unique_ptr<IncidentBook> BeginWithout() {
    IncidentBookOptions options;
    options.history.path = tree_.root() + "/later/history.db";
    options.history.is_optional = true;
    options.history.retry.first_ns = 20'000'000;
    options.log_incidents = false;
    auto book = std::make_unique<IncidentBook>(options, &timeline_);
    EXPECT_TRUE(book->Start().ok());
    return book;
  }
  void Bring(IncidentBook* book) const {
    std::filesystem::rename(ready_, tree_.root() + "/later");
    EXPECT_TRUE(Eventually([&] {
      book->Publish();
      return book->reader().Get("train-7").ok();
    }));
    book->Publish();
  }

  const std::string ready_ = tree_.root() + "/ready";
};

TEST_F(LateHistoryTest, RaisesTheNumbers) {
  MakeEarlier();
  const auto book = BeginWithout();
  Apply({}, book.get());
  Bring(book.get());
  Apply(Hang(), book.get());
  ASSERT_EQ(book->reader().All("train").size(), 1u);
  EXPECT_EQ(book->reader().All("train")[0].id(), "train-8");
}

TEST_F(LateHistoryTest, HostsOfAJobThatHasReturnedAreAwaited) {
  ASSERT_TRUE(MakeEarlier()->Apply(WriteOfHosts(JobKey("train"), {"node-1", "node-2"}, 1000)).ok());
  const auto book = BeginWithout();
  Apply({}, book.get());
  Bring(book.get());
  Apply(Hang(), book.get());
  EXPECT_TRUE(book->reader().All("train").empty()) << "node-2 has not reported";
  book->Apply(RunningJob(), Hang(), timeline_.Now() + kReturnWithinNs);
  const auto incidents = book->reader().All("train");
  ASSERT_EQ(incidents.size(), 1u);
  ASSERT_GT(incidents[0].verdicts(0).missing_evidence_size(), 0);
  EXPECT_EQ(incidents[0].verdicts(0).missing_evidence(0),
            "node-2 has not reported since the daemon was restarted");
}

// Otherwise the new incident would replace an earlier one in the history.
TEST_F(IncidentBookTest, NumbersIncidentsWithoutAReadableHistory) {
  IncidentBook book(WithUnreadableHistory(tree_.root()), &timeline_);
  ASSERT_TRUE(book.Start().ok());
  const int64_t now_ns = timeline_.Now() + kReturnWithinNs;
  book.Apply(RunningJob(), Hang(), now_ns);
  book.Apply(RunningJob(), {}, now_ns + 1'000'000'000);
  book.Apply(RunningJob(), {}, now_ns + 3'000'000'000);
  book.Apply(RunningJob(), Hang(), now_ns + 4'000'000'000);
  const int64_t seconds = timeline_.ToWallTime(now_ns) / 1'000'000'000;
  const auto incidents = book.reader().All("train");
  ASSERT_EQ(incidents.size(), 2u);
  EXPECT_EQ(incidents[0].id(), absl::StrCat("train-", seconds + 1));
  EXPECT_EQ(incidents[1].id(), absl::StrCat("train-", seconds + 5));
}

}  // namespace
}  // namespace rollcall
