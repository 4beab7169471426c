// SPDX-License-Identifier: Apache-2.0
// Who lives and whose each job is, on a real server: the statements, daemons that race, and a
// server that is away. What daemons may conclude from the answers is tried in
// ownership_model_test.cc.
#include "daemon/fleet/fleet_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "daemon/fleet/lease.h"
#include "daemon/history/postgres_layout.h"
#include "eventually.h"
#include "histories.h"
#include "postgres_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

constexpr int64_t kLease = 600 * kSecond;  // none ends while a test runs
const JobId kTrain = {"default", "train"};

DaemonRow Row(const std::string& name, const std::string& incarnation = "") {
  DaemonRow row;
  row.name = name;
  row.address = name + ":9410";
  row.page = "http://" + name + ":9411/";
  row.incarnation = incarnation.empty() ? name + " first" : incarnation;
  row.secret = "secret of " + name;
  return row;
}

class FleetStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer()->problem().empty()) GTEST_SKIP() << TestServer()->problem();
  }
  // A test that failed while the server was away must not make the next ones fail.
  void TearDown() override { TestServer()->Restore(); }

  PostgresOptions Options() const { return {TestServer()->Url(schema_), "", {}, ""}; }
  std::unique_ptr<FleetStore> Make() const { return FleetStore::Make(Options()); }
  std::unique_ptr<PostgresDatabase> Connect() const {
    auto db = PostgresDatabase::Connect(TestServer()->Url(schema_), {});
    EXPECT_TRUE(db.ok()) << db.status();
    return *std::move(db);
  }
  // As if so much time had passed for the daemon's lease.
  void Age(const std::string& name, int64_t ns) const {
    const absl::Status status =
        Sql(Connect().get(),
            "UPDATE daemons SET expires_at = expires_at - ? * interval '1 microsecond' WHERE name "
            "= ?",
            ns / 1000, name)
            .Run();
    EXPECT_TRUE(status.ok()) << status;
  }
  // As if so much time had passed since jobs came to their daemons, and were wanted.
  void MakeOlder(const std::string& interval) const {
    const auto db = Connect();
    for (const char* text :
         {"UPDATE owners SET since = since - ?::interval, wanted_at = wanted_at "
          "- ?::interval",
          "UPDATE daemons SET alive_since = alive_since - ?::interval WHERE ? <> ''"}) {
      const absl::Status status = Sql(db.get(), text, interval, interval).Run();
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  static void Renew(FleetStore* store, const DaemonRow& row, int64_t lease_ns = kLease) {
    const auto daemons = store->Renew(row, lease_ns);
    EXPECT_TRUE(daemons.ok()) << daemons.status();
  }
  static OwnerRow ClaimOne(FleetStore* store, const DaemonRow& row, const JobId& job = kTrain) {
    const auto owners = store->Claim(row, {job});
    EXPECT_TRUE(owners.ok()) << owners.status();
    if (!owners.ok() || owners->count(job) == 0) return {};
    return owners->at(job);
  }

  const TemporaryTree tree_;
  const std::string schema_ = "t" + absl::StrCat(std::filesystem::hash_value(tree_.root()));
};

TEST_F(FleetStoreTest, ADaemonSeesTheOthersThatLive) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  const auto daemons = two->Renew(Row("d2"), kLease);
  ASSERT_TRUE(daemons.ok()) << daemons.status();
  ASSERT_EQ(daemons->size(), 2u);
  const DaemonRow& first = daemons->at(0);
  EXPECT_EQ(first.name, "d1");
  EXPECT_EQ(first.address, "d1:9410");
  EXPECT_EQ(first.page, "http://d1:9411/");
  EXPECT_EQ(first.incarnation, "d1 first");
  EXPECT_EQ(first.secret, "secret of d1");
  EXPECT_GT(first.lives_for_ns, kLease / 2);
  EXPECT_LE(first.lives_for_ns, kLease);
  EXPECT_GT(first.alive_since_ns, int64_t{1'600'000'000} * kSecond);
  Age("d1", kLease);
  const auto later = two->Renew(Row("d2"), kLease);
  ASSERT_EQ(later->size(), 1u);
  EXPECT_EQ(later->at(0).alive_since_ns, daemons->at(1).alive_since_ns)
      << "a renewal is no new life";
}

TEST_F(FleetStoreTest, AJobHasOneOwnerAndTheOthersHearOfIt) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  const OwnerRow first = ClaimOne(one.get(), Row("d1"));
  EXPECT_TRUE(first.is_mine);
  EXPECT_GT(first.token, 0);
  const OwnerRow other = ClaimOne(two.get(), Row("d2"));
  EXPECT_FALSE(other.is_mine);
  EXPECT_EQ(other.daemon, "d1");
  EXPECT_EQ(other.address, "d1:9410");
  EXPECT_EQ(other.token, first.token);
  EXPECT_EQ(ClaimOne(one.get(), Row("d1")).token, first.token) << "once more changes nothing";
  EXPECT_EQ(one->Owned(Row("d1"))->at(kTrain), first.token);
  EXPECT_TRUE(two->Owned(Row("d2"))->empty());
  EXPECT_EQ(two->Owners()->at(kTrain).daemon, "d1");
}

TEST_F(FleetStoreTest, AnOwnerLearnsWhichOfItsJobsAnotherDaemonWants) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  const JobId other = {"default", "other"};
  ClaimOne(one.get(), Row("d1"));
  ClaimOne(one.get(), Row("d1"), other);
  ASSERT_TRUE(two->Want(Row("d2"), {kTrain, {"default", "nobody's"}}).ok());
  EXPECT_TRUE(one->Wanted(Row("d1"))->empty()) << "it has it since a moment";
  MakeOlder("5 seconds");
  ASSERT_TRUE(two->Want(Row("d2"), {kTrain}).ok());
  EXPECT_EQ(*one->Wanted(Row("d1")), (std::map<JobId, std::string>{{kTrain, "d2"}}));
  ASSERT_TRUE(one->HandOver(Row("d1"), kTrain, one->Owned(Row("d1"))->at(kTrain),
                            two->Renew(Row("d2"), kLease)->at(1))
                  .ok());
  EXPECT_TRUE(two->Wanted(Row("d2"))->empty()) << "it has what it wanted";
  EXPECT_TRUE(ClaimOne(two.get(), Row("d2")).is_wanted);
  Age("d2", kLease);
  EXPECT_FALSE(ClaimOne(one.get(), Row("d1")).is_wanted) << "its owner has died";
  ASSERT_TRUE(two->Want(Row("d2"), {other}).ok());
  MakeOlder("6 seconds");
  EXPECT_TRUE(one->Wanted(Row("d1"))->empty()) << "agents have stopped asking";
}

TEST_F(FleetStoreTest, ManyJobsAreOneStatementWhateverTheirNames) {
  const auto store = Make();
  Renew(store.get(), Row("d1"));
  std::vector<JobId> jobs = {{"default", "a \"quoted\" {job}, with \\ and \xc3\xa4"},
                             {"team", "x"},
                             {"default", "x"},
                             {"default", "NULL"},
                             {"default", ""},
                             {"default", "odd\xff"},
                             {"default", "odd?"},
                             {"default", "x"}};
  for (int i = 0; i < 2000; ++i) jobs.push_back({"default", absl::StrCat("job-", i)});
  const auto owners = store->Claim(Row("d1"), jobs);
  ASSERT_TRUE(owners.ok()) << owners.status();
  for (const JobId& job : jobs) {
    ASSERT_EQ(owners->count(job), 1u) << job.job;
    EXPECT_TRUE(owners->at(job).is_mine) << job.job;
  }
  EXPECT_EQ(store->Owned(Row("d1"))->size(), jobs.size() - 2)
      << "x twice; odd? and its like are one row";
  EXPECT_TRUE(store->Claim(Row("d1"), {})->empty());
}

TEST_F(FleetStoreTest, RaisesTheTokenWhenADeadDaemonsJobsAreClaimed) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  const int64_t before = ClaimOne(one.get(), Row("d1")).token;
  Age("d1", kLease);
  EXPECT_TRUE(two->Owners()->empty()) << "its owner is dead";
  const OwnerRow taken = ClaimOne(two.get(), Row("d2"));
  EXPECT_TRUE(taken.is_mine);
  EXPECT_GT(taken.token, before);
  Renew(one.get(), Row("d1"));
  EXPECT_TRUE(one->Owned(Row("d1"))->empty()) << "it comes back, and has lost the job";
  EXPECT_FALSE(ClaimOne(one.get(), Row("d1")).is_mine);
}

TEST_F(FleetStoreTest, ADeadDaemonThatComesBackFirstStillHasItsJobs) {
  const auto one = Make();
  Renew(one.get(), Row("d1"));
  const int64_t token = ClaimOne(one.get(), Row("d1")).token;
  Age("d1", kLease);
  EXPECT_EQ(one->Claim(Row("d1"), {kTrain})->count(kTrain), 0u) << "not before it renews";
  Renew(one.get(), Row("d1"));
  EXPECT_EQ(one->Owned(Row("d1"))->at(kTrain), token);
}

TEST_F(FleetStoreTest, WhoHasNoLeaseGetsNoJob) {
  const auto one = Make();
  EXPECT_TRUE(one->Claim(Row("d1"), {kTrain})->empty()) << "never renewed";
  Renew(one.get(), Row("d1"));
  EXPECT_TRUE(one->Claim(Row("d1", "another start"), {kTrain})->empty());
  EXPECT_TRUE(ClaimOne(one.get(), Row("d1")).is_mine);
}

TEST_F(FleetStoreTest, ADaemonThatStartsAgainKeepsItsJobsAndTheirTokens) {
  const auto first = Make();
  Renew(first.get(), Row("d1"));
  const int64_t token = ClaimOne(first.get(), Row("d1")).token;
  const auto second = Make();
  const DaemonRow again = Row("d1", "d1 second");
  Renew(second.get(), again);
  EXPECT_EQ(second->Owned(again)->at(kTrain), token) << "its spool has writes with this token";
  EXPECT_TRUE(first->Owned(Row("d1"))->empty()) << "the earlier start has nothing";
  EXPECT_TRUE(first->Claim(Row("d1"), {kTrain})->count(kTrain) == 0 ||
              !first->Claim(Row("d1"), {kTrain})->at(kTrain).is_mine);
}

TEST_F(FleetStoreTest, ReportsTwoDaemonsOfOneNameThatDoNotTakeTurns) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  DaemonRow other = Row("d1", "elsewhere");
  other.address = "other-host:9410";
  const auto refused = two->Renew(other, kLease);
  ASSERT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("d1:9410"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--daemon-name=NAME"));
  Age("d1", kLease);
  Renew(two.get(), other);
  // The first one was only slow. Its address is that of no daemon now.
  EXPECT_TRUE(absl::IsFailedPrecondition(one->Renew(Row("d1"), kLease).status()));
  // And of one that took over at the same address.
  const auto three = Make();
  DaemonRow third = other;
  third.incarnation = "third";
  Renew(three.get(), third);
  EXPECT_TRUE(absl::IsFailedPrecondition(two->Renew(other, kLease).status())) << "no turns";
  Renew(three.get(), third);
}

TEST_F(FleetStoreTest, HandsJobsOverOnlyFromOwnersToLiveDaemons) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  const int64_t token = ClaimOne(one.get(), Row("d1")).token;
  EXPECT_TRUE(absl::IsAborted(two->HandOver(Row("d2"), kTrain, token, Row("d2")))) << "not its job";
  EXPECT_TRUE(absl::IsAborted(one->HandOver(Row("d1"), kTrain, token - 1, Row("d2"))))
      << "an old token";
  EXPECT_TRUE(absl::IsAborted(one->HandOver(Row("d1"), kTrain, token, Row("d3")))) << "nobody";
  ASSERT_EQ(one->HandOver(Row("d1"), kTrain, token, Row("d2")), absl::OkStatus());
  EXPECT_TRUE(one->Owned(Row("d1"))->empty());
  EXPECT_GT(two->Owned(Row("d2"))->at(kTrain), token);
  EXPECT_TRUE(ClaimOne(two.get(), Row("d2")).is_mine);
}

// The server may carry out a request long after its sender has stopped waiting. Once the sender
// knows again that the job is its own, it is too late for that.
TEST_F(FleetStoreTest, KeepsAJobWhoseHandOverFailed) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  const int64_t token = ClaimOne(one.get(), Row("d1")).token;
  const auto since_us = [this] {
    return ReadInteger(Connect().get(),
                       "SELECT (extract(epoch FROM since) * 1000000)::bigint FROM owners");
  };
  const int64_t claimed_us = since_us();
  const auto db = Connect();
  auto lock = std::make_unique<SqlTransaction>(db.get());
  ASSERT_TRUE(Sql(db.get(), "SELECT * FROM owners FOR UPDATE").Run().ok());
  EXPECT_TRUE(absl::IsUnavailable(one->HandOver(Row("d1"), kTrain, token, Row("d2"))));
  const int64_t sent_before_us =
      ReadInteger(db.get(), "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
  ASSERT_TRUE(lock->End(absl::OkStatus()).ok());
  EXPECT_EQ(since_us(), claimed_us);
  EXPECT_EQ(one->Owned(Row("d1"))->at(kTrain), token) << "the token stays: writes wait with it";
  EXPECT_GT(since_us(), sent_before_us)
      << "a request that counts for what was owned before then is void";
  const int64_t settled_us = since_us();
  EXPECT_EQ(one->Owned(Row("d1"))->at(kTrain), token);
  EXPECT_EQ(since_us(), settled_us);
  EXPECT_EQ(one->HandOver(Row("d1"), kTrain, token, Row("d2")), absl::OkStatus())
      << "a new one counts";
}

TEST_F(FleetStoreTest, WhatIsReleasedHasNoOwnerAndItsTokenGoesOn) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  const int64_t token = ClaimOne(one.get(), Row("d1")).token;
  ASSERT_TRUE(two->Release(Row("d2"), {kTrain}).ok());
  EXPECT_EQ(one->Owned(Row("d1"))->size(), 1u) << "not the other's to release";
  ASSERT_TRUE(one->Release(Row("d1"), {kTrain}).ok());
  EXPECT_TRUE(one->Owners()->empty());
  const OwnerRow next = ClaimOne(two.get(), Row("d2"));
  EXPECT_TRUE(next.is_mine);
  EXPECT_GT(next.token, token);
}

TEST_F(FleetStoreTest, WhoLeavesIsReplacedAtOnce) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  ClaimOne(one.get(), Row("d1"));
  ASSERT_TRUE(one->Leave(Row("d1")).ok());
  EXPECT_TRUE(ClaimOne(two.get(), Row("d2")).is_mine);
  EXPECT_EQ(two->Renew(Row("d2"), kLease)->size(), 1u);
}

TEST_F(FleetStoreTest, DaemonsThatStartAtOnceMakeTheTablesOnceAndShareTheJobs) {
  std::vector<JobId> jobs;
  for (int i = 0; i < 200; ++i) jobs.push_back({"default", absl::StrCat("job-", i)});
  std::vector<std::future<size_t>> starts;
  for (int i = 0; i < 6; ++i) {
    starts.push_back(std::async(std::launch::async, [this, &jobs, i] {
      const auto store = Make();
      const DaemonRow self = Row(absl::StrCat("d", i));
      absl::Status status;
      for (int tries = 0; tries < 20; ++tries) {
        status = store->Renew(self, 60 * kSecond).status();
        if (status.ok()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
      EXPECT_TRUE(status.ok()) << status;
      std::vector<JobId> order = jobs;
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<uint32_t>(i)));
      const auto owners = store->Claim(self, order);
      EXPECT_TRUE(owners.ok()) << owners.status();
      return store->Owned(self)->size();
    }));
  }
  size_t all = 0;
  for (auto& start : starts) all += start.get();
  EXPECT_EQ(all, jobs.size());
  EXPECT_EQ(ReadInteger(Connect().get(), "SELECT count(*) FROM layouts"), kPostgresLayout);
}

TEST_F(FleetStoreTest, ToleratesARestartedServerAndCutConnections) {
  const auto store = Make();
  Renew(store.get(), Row("d1"));
  const int64_t token = ClaimOne(store.get(), Row("d1")).token;
  (void)Sql(Connect().get(),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != "
            "pg_backend_pid() AND application_name = 'rollcalld'")
      .Run();
  EXPECT_EQ(ClaimOne(store.get(), Row("d1")).token, token) << "the same call connects again";
  TestServer()->Stop();
  const absl::Status away = store->Renew(Row("d1"), kLease).status();
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  TestServer()->Start();
  Renew(store.get(), Row("d1"));
  EXPECT_EQ(store->Owned(Row("d1"))->at(kTrain), token);
}

TEST_F(FleetStoreTest, AServerThatSaysNothingDoesNotHoldTheThread) {
  PostgresOptions options = Options();
  options.times.answer = options.times.connect = std::chrono::seconds(600);  // of the history
  const auto store = FleetStore::Make(options);
  Renew(store.get(), Row("d1"));
  TestServer()->Pause();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsUnavailable(store->Renew(Row("d1"), kLease).status()))
      << "of an open connection";
  EXPECT_TRUE(absl::IsUnavailable(store->Renew(Row("d1"), kLease).status())) << "with a new one";
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
  TestServer()->Resume();
  Renew(store.get(), Row("d1"));
}

// A claim that began before a renewal was committed must not take the job after the renewal: the
// daemon that renewed would not learn of it.
TEST_F(FleetStoreTest, AClaimWaitsForARenewalThatIsUnderWay) {
  const auto one = Make(), two = Make();
  Renew(one.get(), Row("d1"));
  Renew(two.get(), Row("d2"));
  ClaimOne(one.get(), Row("d1"));
  Age("d1", kLease);
  const auto db = Connect();
  auto renewal = std::make_unique<SqlTransaction>(db.get());
  ASSERT_TRUE(Sql(db.get(),
                  "UPDATE daemons SET expires_at = clock_timestamp() + interval '10 min' "
                  "WHERE name = 'd1'")
                  .Run()
                  .ok());
  const auto claim = [&] {
    auto owners = two->Claim(Row("d2"), {kTrain});
    while (!owners.ok()) owners = two->Claim(Row("d2"), {kTrain});  // it waits for a second only
    return owners->at(kTrain).is_mine;
  };
  auto is_taken = std::async(std::launch::async, claim);
  const auto other = Connect();
  EXPECT_TRUE(Eventually([&] {
    return ReadInteger(other.get(), "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
  })) << "it does not wait";
  ASSERT_TRUE(renewal->End(absl::OkStatus()).ok());
  EXPECT_FALSE(is_taken.get());
  EXPECT_EQ(one->Owned(Row("d1"))->size(), 1u);
}

// Daemons with short leases that stand still at random and race for a few jobs, by the rules of
// fleet_store.h. Each says when it could prove that a job was its own.
TEST_F(FleetStoreTest, NoTwoDaemonsThatRaceEverOwnOneJobAtOnce) {
  constexpr int64_t kShort = kSecond / 5, kMargin = kSecond / 50;
  constexpr int kDaemons = 4;
  constexpr auto kFor = std::chrono::seconds(12);
  const std::vector<JobId> jobs = {{"default", "a"}, {"default", "b"}, {"team", "a"}};
  std::mutex mutex;
  std::map<JobId, int64_t> highest;  // the token of the newest owner that acted
  std::atomic<int> overlaps{0}, acts{0}, changes{0};
  std::atomic<bool> is_over{false};
  Renew(Make().get(), Row("first"));  // the tables

  // Tokens rise: one that acts with a lower token than another before it has not noticed its
  // successor.
  const auto act = [&](const JobId& job, int64_t token, const Lease& lease) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!lease.IsHeld(BootNs())) return;
    int64_t& newest = highest[job];
    if (token < newest) ++overlaps;
    newest = std::max(newest, token);
    ++acts;
  };
  const auto run = [&](int number) {
    const auto store = Make();
    const DaemonRow self = Row(absl::StrCat("d", number));
    std::mt19937 chance(static_cast<uint32_t>(number));
    Lease lease(kShort, kMargin);
    while (!is_over) {
      if (chance() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(chance() % 400));
      const int64_t asked = BootNs();
      if (!store->Renew(self, kShort).ok()) continue;
      auto owned = store->Owned(self);
      if (!owned.ok()) continue;
      lease.Renewed(asked);
      const auto claimed = store->Claim(self, jobs);
      if (claimed.ok()) {
        for (const auto& [job, owner] : *claimed) {
          if (!owner.is_mine) continue;
          if (owned->emplace(job, owner.token).second) ++changes;
        }
      }
      for (int i = 0; i < 10; ++i) {
        for (const auto& [job, token] : *owned) act(job, token, lease);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kDaemons; ++i) threads.emplace_back(run, i);
  std::this_thread::sleep_for(kFor);
  EXPECT_TRUE(Eventually([&] { return changes > 5 && acts > 50; }));
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  std::cout << acts << " acts, " << changes << " jobs taken\n";
  EXPECT_EQ(overlaps, 0);
}

}  // namespace
}  // namespace rollcall
