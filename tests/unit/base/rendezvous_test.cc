// SPDX-License-Identifier: Apache-2.0
#include "base/rendezvous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace rollcall {
namespace {

constexpr int kJobs = 10'000;

std::vector<std::string> Daemons(size_t count) {
  std::vector<std::string> addresses;
  for (size_t i = 1; i <= count; ++i) addresses.push_back("10.0.0." + std::to_string(i) + ":7655");
  return addresses;
}

std::string Winner(const std::vector<std::string>& addresses, const std::string& tenant,
                   const std::string& job) {
  return addresses[PreferredDaemon(addresses, tenant, job)];
}

std::string Winner(const std::vector<std::string>& addresses, int job) {
  return Winner(addresses, "default", "job-" + std::to_string(job));
}

// An agent and a daemon of different releases must agree.
TEST(RendezvousTest, GivesTheSameValuesInEveryRelease) {
  EXPECT_EQ(RendezvousWeight("10.0.0.1:7655", "default", "train"), 0xbd2741f5aa00a5beu);
  EXPECT_EQ(RendezvousWeight("10.0.0.2:7655", "", "train"), 0x73a7d1233fe42dc3u);
  EXPECT_EQ(Winner(Daemons(3), "default", "train"), "10.0.0.3:7655");
  EXPECT_EQ(Winner(Daemons(3), "default", "llama-70b"), "10.0.0.2:7655");
  EXPECT_EQ(Winner(Daemons(3), "research", "train"), "10.0.0.1:7655");
}

TEST(RendezvousTest, DoesNotDependOnTheOrderOfTheAddresses) {
  std::vector<std::string> addresses = Daemons(4);
  std::map<int, std::string> winners;
  for (int job = 0; job < 100; ++job) winners[job] = Winner(addresses, job);
  while (std::next_permutation(addresses.begin(), addresses.end())) {
    for (const auto& [job, winner] : winners) EXPECT_EQ(Winner(addresses, job), winner);
  }
}

TEST(RendezvousTest, KeepsTheNamesApart) {
  EXPECT_NE(RendezvousWeight("a", "b", "c"), RendezvousWeight("a", "bc", ""));
  EXPECT_NE(RendezvousWeight("a", "b", "c"), RendezvousWeight("ab", "", "c"));
}

TEST(RendezvousTest, MovesOnlyTheJobsOfADaemonThatLeaves) {
  const std::vector<std::string> all = Daemons(5);
  for (const std::string& gone : all) {
    std::vector<std::string> rest = all;
    rest.erase(std::find(rest.begin(), rest.end(), gone));
    for (int job = 0; job < kJobs; ++job) {
      const std::string before = Winner(all, job);
      if (before == gone) {
        EXPECT_NE(Winner(rest, job), gone);
      } else {
        EXPECT_EQ(Winner(rest, job), before);
      }
    }
  }
}

TEST(RendezvousTest, BalancesTenThousandJobsWithinATenth) {
  for (const size_t count : {2, 3, 5, 8}) {
    std::map<std::string, int> jobs;
    for (int job = 0; job < kJobs; ++job) ++jobs[Winner(Daemons(count), job)];
    ASSERT_EQ(jobs.size(), count);
    const double fair = static_cast<double>(kJobs) / static_cast<double>(count);
    for (const auto& [daemon, has] : jobs) EXPECT_NEAR(has, fair, fair / 10) << daemon;
  }
}

}  // namespace
}  // namespace rollcall
