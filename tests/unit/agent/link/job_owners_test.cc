// SPDX-License-Identifier: Apache-2.0
#include "agent/link/job_owners.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rendezvous.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr char kA[] = "10.0.0.1:7655";
constexpr char kB[] = "10.0.0.2:7655";
constexpr char kC[] = "10.0.0.3:7655";
const std::vector<std::string> kAll = {kA, kB, kC};

using Streams = std::set<std::string>;

// A job that prefers the daemon among these.
std::string JobFor(const std::string& daemon, const std::vector<std::string>& among = kAll) {
  for (int i = 0;; ++i) {
    const std::string job = "job-" + std::to_string(i);
    if (among[PreferredDaemon(among, "default", job)] == daemon) return job;
  }
}

std::vector<std::string> Without(const std::string& gone) {
  std::vector<std::string> rest;
  for (const std::string& daemon : kAll) {
    if (daemon != gone) rest.push_back(daemon);
  }
  return rest;
}

class JobOwnersTest : public testing::Test {
 protected:
  JobOwnersTest() : owners_("node-1", kAll, [this] { ++changes_; }) {}

  // The daemon welcomes the agent and names all.
  void Open(const std::string& stream, const std::vector<std::string>& daemons = kAll) {
    owners_.Opened(stream, now_);
    owners_.Welcomed(stream, daemons.empty() ? "" : stream, daemons, /*stays=*/true, now_);
  }
  void OpenAll() {
    for (const std::string& daemon : kAll) Open(daemon);
  }
  bool Takes(const std::string& stream, const std::string& job) { return Turn(stream, job) != 0; }
  uint64_t Turn(const std::string& stream, const std::string& job) {
    return owners_.Takes(stream, "", job, now_);
  }
  // Its stream breaks, and the next try fails.
  void Kill(const std::string& daemon) {
    owners_.Broken(daemon, now_);
    owners_.Broken(daemon, now_);
  }

  int64_t now_ = 100 * kSecond;
  int changes_ = 0;
  JobOwners owners_;
};

TEST_F(JobOwnersTest, GivesEachJobToTheDaemonThatItPrefers) {
  OpenAll();
  for (const std::string& daemon : kAll) {
    const std::string job = JobFor(daemon);
    for (const std::string& stream : kAll) EXPECT_EQ(Takes(stream, job), stream == daemon);
    EXPECT_EQ(owners_.Owner("", job), daemon);
    EXPECT_EQ(owners_.Owner("default", job), daemon);
  }
}

TEST_F(JobOwnersTest, GivesAProcessWithoutAJobToTheDaemonOfTheUnnamedOne) {
  OpenAll();
  EXPECT_EQ(owners_.Owner("", ""), owners_.Owner("default", "default"));
}

TEST_F(JobOwnersTest, NeedsOneStreamForAHostWithoutJobs) {
  const std::string home = owners_.Home();
  EXPECT_EQ(owners_.Needed(now_), Streams{home});
  Open(home);
  EXPECT_EQ(owners_.Needed(now_), Streams{home});
}

// The daemons may have other addresses than those that the agent was given.
TEST_F(JobOwnersTest, AsksOneDaemonForAllBeforeItFollowsTheirAddresses) {
  const std::string home = owners_.Home();
  owners_.Opened(home, now_);
  for (const std::string& daemon : kAll) EXPECT_TRUE(Takes(home, JobFor(daemon)));
  EXPECT_EQ(owners_.Needed(now_), Streams{home});
  owners_.Welcomed(home, "a:1", {"a:1", "b:1", "c:1"}, true, now_);
  const std::string job_of_b = JobFor("b:1", {"a:1", "b:1", "c:1"});
  EXPECT_FALSE(Takes(home, job_of_b));
  EXPECT_TRUE(Takes(home, JobFor("a:1", {"a:1", "b:1", "c:1"})));
  EXPECT_EQ(owners_.Needed(now_).count("b:1"), 1u);
  EXPECT_EQ(owners_.Needed(now_).count("a:1"), 0u);  // the stream to `home` leads there
}

TEST_F(JobOwnersTest, NeedsTheStreamsOfTheJobsOnTheHostUntilTheyAreLongGone) {
  OpenAll();
  Takes(kA, JobFor(kB));
  Takes(kA, JobFor(kC));
  EXPECT_EQ(owners_.Needed(now_), (Streams{kB, kC}));
  now_ += JobOwners::kJobStays + 1;
  EXPECT_EQ(owners_.Needed(now_), Streams{owners_.Home()});
}

TEST_F(JobOwnersTest, MovesOnlyTheJobThatADaemonGivesToAnother) {
  OpenAll();
  const std::string moved = JobFor(kA);
  const std::string stays = [&] {
    for (int i = 0;; ++i) {
      const std::string job = "other-" + std::to_string(i);
      if (owners_.Owner("", job) == kA) return job;
    }
  }();
  Takes(kA, moved);
  Takes(kA, stays);
  owners_.Told(kA, "", moved, kC);
  EXPECT_TRUE(Takes(kC, moved));
  EXPECT_FALSE(Takes(kA, moved));
  EXPECT_TRUE(Takes(kA, stays));
  EXPECT_EQ(owners_.Needed(now_), (Streams{kA, kC}));
}

// Nothing was sent meanwhile, so the stream itself has not noticed.
TEST_F(JobOwnersTest, AStreamReportsAJobAnewThatAnotherDaemonHadMeanwhile) {
  OpenAll();
  const std::string job = JobFor(kA);
  const uint64_t first = Turn(kA, job);
  EXPECT_EQ(Turn(kA, job), first);
  owners_.Told(kA, "", job, kC);
  owners_.Told(kC, "", job, kA);
  const uint64_t second = Turn(kA, job);
  EXPECT_NE(second, first);
  EXPECT_NE(second, 0u);
  owners_.Told(kA, "", job, "");
  EXPECT_EQ(Turn(kA, job), second) << "it stays";
}

TEST_F(JobOwnersTest, LeavesAJobWithTheDaemonThatSaysItOwnsIt) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  owners_.Told(kB, "", job, "");
  EXPECT_EQ(owners_.Owner("", job), kB);
}

TEST_F(JobOwnersTest, KnowsAnAnswerByTheNamesThatTheDaemonMayUse) {
  OpenAll();
  Takes(kA, "");
  const std::string other = owners_.Owner("", "") == kA ? kB : kA;
  owners_.Told(kC, "default", "default", other);
  EXPECT_EQ(owners_.Owner("", ""), other);
}

TEST_F(JobOwnersTest, IgnoresReportsOfJobsThatAreNotHere) {
  OpenAll();
  const std::string job = JobFor(kA);
  const uint64_t version = owners_.version();
  owners_.Told(kB, "", job, kB);
  EXPECT_EQ(owners_.Owner("", job), kA);
  EXPECT_EQ(owners_.version(), version);
}

TEST_F(JobOwnersTest, GivesTheJobsOfADeadDaemonToThoseThatTheyPreferNext) {
  OpenAll();
  const std::string job = JobFor(kA), other = JobFor(kB);
  const std::vector<std::string> rest = Without(kA);
  const std::string next = rest[PreferredDaemon(rest, "default", job)];
  Takes(kA, job);
  Takes(kB, other);
  Kill(kA);
  EXPECT_TRUE(Takes(next, job));
  EXPECT_FALSE(Takes(kA, job));
  EXPECT_TRUE(Takes(kB, other));
  EXPECT_EQ(owners_.Needed(now_).count(kA), 1u);  // its return must be noticed
}

// A daemon restarts the streams of agents that shall send their whole state.
TEST_F(JobOwnersTest, WaitsAMomentForADaemonWhoseStreamBroke) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  owners_.Broken(kA, now_);
  EXPECT_TRUE(Takes(kA, job));
  EXPECT_EQ(owners_.Expire(now_), now_ + KnownDaemons::kBackWithin);
  owners_.Welcomed(kA, kA, kAll, true, now_ + 1);
  now_ += KnownDaemons::kBackWithin;
  EXPECT_EQ(owners_.Expire(now_), std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(Takes(kA, job));
  owners_.Broken(kA, now_);
  now_ += KnownDaemons::kBackWithin;
  owners_.Expire(now_);
  EXPECT_FALSE(Takes(kA, job));
}

TEST_F(JobOwnersTest, TakesADaemonForAwayThatDoesNotWelcomeItInTime) {
  Open(kB);
  const std::string job = JobFor(kA);
  Takes(kB, job);
  owners_.Opened(kA, now_);
  EXPECT_TRUE(Takes(kA, job));
  now_ += KnownDaemons::kWelcomeWithin - 1;
  EXPECT_EQ(owners_.Expire(now_), now_ + 1);
  EXPECT_TRUE(Takes(kA, job));
  owners_.Expire(++now_);
  EXPECT_FALSE(Takes(kA, job));
}

TEST_F(JobOwnersTest, GivesTheJobsBackToADaemonThatReturns) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  Kill(kA);
  EXPECT_NE(owners_.Owner("", job), kA);
  owners_.Welcomed(kA, kA, kAll, true, now_);
  EXPECT_EQ(owners_.Owner("", job), kA);
}

// The lease of the dead owner is not over yet.
TEST_F(JobOwnersTest, AsksAgainWhileADaemonRefusesAJobForOneThatIsAway) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  Kill(kA);
  const std::string next = owners_.Owner("", job);
  EXPECT_FALSE(owners_.MustAskAgain(next, now_));
  owners_.Told(next, "", job, kA);
  EXPECT_EQ(owners_.Owner("", job), next);
  EXPECT_TRUE(owners_.MustAskAgain(next, now_));
  owners_.Told(next, "", job, "");
  EXPECT_FALSE(owners_.MustAskAgain(next, now_));
  EXPECT_EQ(owners_.Owner("", job), next);
  owners_.Welcomed(kA, kA, kAll, true, now_);
  EXPECT_EQ(owners_.Owner("", job), next);  // until that daemon gives it away
}

TEST_F(JobOwnersTest, AsksNoMoreWhenTheOwnerIsBack) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  Kill(kA);
  const std::string next = owners_.Owner("", job);
  owners_.Told(next, "", job, kA);
  owners_.Welcomed(kA, kA, kAll, true, now_);
  EXPECT_FALSE(owners_.MustAskAgain(next, now_));
  EXPECT_EQ(owners_.Owner("", job), kA);
}

TEST_F(JobOwnersTest, HasOneStreamToADaemonThatIsReachedByTwoAddresses) {
  owners_.SetGiven({"lb:7655"});
  owners_.Opened("lb:7655", now_);
  owners_.Welcomed("lb:7655", kA, {kA}, true, now_);
  Open(kA, {kA});
  const std::string job = "train";
  EXPECT_TRUE(Takes(kA, job));
  EXPECT_FALSE(Takes("lb:7655", job));
  EXPECT_EQ(owners_.Needed(now_), Streams{kA});
}

TEST_F(JobOwnersTest, BeginsAnewWithTheGivenDaemonsWhenAllOthersAreGone) {
  owners_.SetGiven({"lb:7655"});
  owners_.Opened("lb:7655", now_);
  owners_.Welcomed("lb:7655", kA, {kA, kB}, true, now_);
  Open(kB, {kA, kB});
  Kill("lb:7655");
  Kill(kB);
  owners_.Closed("lb:7655");
  owners_.Opened(kA, now_);
  Kill(kA);
  EXPECT_EQ(owners_.Home(), "lb:7655");
  EXPECT_EQ(owners_.Needed(now_).count("lb:7655"), 1u);
}

TEST_F(JobOwnersTest, TriesAllDaemonsWhileNoneAnswers) {
  OpenAll();
  for (const std::string& daemon : kAll) Kill(daemon);
  EXPECT_EQ(owners_.Needed(now_), (Streams{kA, kB, kC}));
}

TEST_F(JobOwnersTest, FollowsTheDaemonsThatADaemonNames) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  owners_.SetDaemons({kB, kC});
  EXPECT_NE(owners_.Owner("", job), kA);
  owners_.SetDaemons({});
  EXPECT_NE(owners_.Owner("", job), kA);
  owners_.SetDaemons(kAll);
  EXPECT_EQ(owners_.Owner("", job), kA);
}

// A daemon must not lead the agent to a program on its own host.
TEST_F(JobOwnersTest, ConnectsToNoFileThatADaemonNames) {
  OpenAll();
  owners_.SetDaemons({"unix:/tmp/x", "", "no-port", kB});
  EXPECT_EQ(owners_.Home(), kB);
  Takes(kB, "train");
  owners_.Told(kB, "", "train", "unix:/tmp/x");
  EXPECT_EQ(owners_.Owner("", "train"), kB);
}

TEST_F(JobOwnersTest, FollowsNoMoreThanSoManyDaemons) {
  Open(kA);
  std::vector<std::string> many;
  for (size_t i = 0; i < 10 * KnownDaemons::kMostDaemons; ++i) {
    many.push_back("host-" + std::to_string(i) + ":1");
  }
  owners_.SetDaemons(many);
  std::set<std::string> used;
  for (int job = 0; job < 5000; ++job) used.insert(owners_.Owner("", std::to_string(job)));
  EXPECT_LE(used.size(), KnownDaemons::kMostDaemons);
}

// Of an older release, or alone.
TEST_F(JobOwnersTest, SharesTheJobsAmongGivenDaemonsThatNameNoOther) {
  for (const std::string& daemon : kAll) Open(daemon, {});
  for (const std::string& daemon : kAll) {
    EXPECT_TRUE(Takes(daemon, JobFor(daemon)));
    EXPECT_FALSE(owners_.IsInFleet(daemon));
  }
}

TEST_F(JobOwnersTest, LeavesEverythingWithTheOnlyDaemon) {
  JobOwners one("node-1", {kA});
  one.Opened(kA, now_);
  one.Welcomed(kA, "", {}, true, now_);
  EXPECT_NE(one.Takes(kA, "", "train", now_), 0u);
  one.Broken(kA, now_);
  one.Broken(kA, now_);
  EXPECT_NE(one.Takes(kA, "", "train", now_), 0u);
  EXPECT_EQ(one.Needed(now_), Streams{kA});
}

TEST_F(JobOwnersTest, KeepsTheOwnersOnceItIsFrozen) {
  OpenAll();
  const std::string job = JobFor(kA);
  Takes(kA, job);
  owners_.Freeze();
  Kill(kA);
  owners_.Told(kA, "", job, kB);
  EXPECT_TRUE(Takes(kA, job));
  EXPECT_TRUE(Takes(kB, JobFor(kB)));
}

TEST_F(JobOwnersTest, TellsOfEachChange) {
  OpenAll();
  Takes(kA, "train");
  const int before = changes_;
  Takes(kA, "train");
  EXPECT_EQ(changes_, before);
  Takes(kA, "another");
  owners_.Broken(kA, now_);
  owners_.SetDaemons({kB, kC});
  EXPECT_EQ(changes_, before + 3);
}

}  // namespace
}  // namespace rollcall
