// SPDX-License-Identifier: Apache-2.0
// The cost of finding the ranks that have never joined, where thousands of communicators lack some:
// counted, and not measured.
#include "daemon/rules/members/rank_map.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/progress.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Pairs of neighbours, of which the second one has not joined.
JobBuilder Pairs(int pairs, const std::function<std::string(int)>& name) {
  JobBuilder job(2 * pairs);
  job.state.communicators.clear();
  for (int pair = 0; pair < pairs; ++pair) {
    const uint64_t id = static_cast<uint64_t>(pair) + 1;
    job.AddCommunicator(id, name(pair), {2 * pair, 2 * pair + 1});
    job.state.communicators.at(id).members.erase(1);
  }
  return job;
}

Process& Of(JobBuilder* job, int rank) {
  return job->state.processes.at(static_cast<size_t>(rank));
}

std::string OneName(int /*pair*/) { return "pp"; }

struct Search {
  size_t found = 0, looked_at = 0;
};

// Searches for the ranks that each communicator lacks.
Search FindAll(const JobState& job) {
  RankFinder finder(job);
  Search search;
  for (const auto& [id, comm] : job.communicators) {
    search.found += finder.Find(comm, UnknownRanks(comm)).processes.size();
  }
  search.looked_at = finder.looked_at();
  return search;
}

struct Scenario {
  const char* name;
  std::function<JobBuilder(int pairs)> make;
  bool finds_all;
};

JobBuilder NobodyKnows(int pairs) { return Pairs(pairs, OneName); }

// The first half of the pairs has all its members: the second half has their pattern.
JobBuilder HalfComplete(int pairs) {
  JobBuilder job = Pairs(pairs, OneName);
  for (int pair = 0; pair < pairs / 2; ++pair) {
    job.AddCommunicator(static_cast<uint64_t>(pair) + 1, "pp", {2 * pair, 2 * pair + 1});
  }
  return job;
}

// Every second rank is on a host that is lost.
JobBuilder SilentHosts(int pairs) {
  JobBuilder job = Pairs(pairs, OneName);
  for (int pair = 0; pair < pairs; ++pair) {
    Of(&job, 2 * pair + 1).liveness = Liveness::kSilent;
  }
  return job;
}

// All that are heard have their place, but for the last one.
JobBuilder SilentHostsAndOneWithoutAPlace(int pairs) {
  JobBuilder job = SilentHosts(pairs);
  Of(&job, 2 * pairs - 1).liveness = Liveness::kAlive;
  return job;
}

JobBuilder NamedPairs(int pairs) {
  JobBuilder job = Pairs(pairs, [](int pair) {
    return "world:p2p:" + std::to_string(2 * pair) + ":" + std::to_string(2 * pair + 1);
  });
  job.AddCommunicator(kDp, "world", JobBuilder::Ranks(0, 2 * pairs));
  return job;
}

JobBuilder PairsOfManyGroups(int pairs) {
  return Pairs(pairs, [](int pair) { return "tp_" + std::to_string(pair) + ":p2p:0:1"; });
}

// Each pair got a world of its own size.
JobBuilder InventedWorlds(int pairs) {
  JobBuilder job = SilentHosts(pairs);
  for (int pair = 0; pair < pairs; ++pair) {
    Of(&job, 2 * pair).world_size = Of(&job, 2 * pair + 1).world_size = 100 + pair;
  }
  return job;
}

JobBuilder WithoutRanks(int pairs) {
  JobBuilder job = Pairs(pairs, OneName);
  for (Process& process : job.state.processes) process.global_rank = -1;
  return job;
}

const Scenario kScenarios[] = {
    {"nobody_knows", NobodyKnows, false},
    {"half_complete", HalfComplete, true},
    {"silent_hosts", SilentHosts, true},
    {"silent_hosts_and_one_without_a_place", SilentHostsAndOneWithoutAPlace, false},
    {"named_pairs", NamedPairs, true},
    {"pairs_of_many_groups", PairsOfManyGroups, false},
    {"invented_worlds", InventedWorlds, false},
    {"without_ranks", WithoutRanks, false},
};

class RankFinderCostTest : public testing::TestWithParam<Scenario> {};

TEST_P(RankFinderCostTest, GrowsWithTheRanksAndNotWithTheirSquare) {
  constexpr int kFew = 200, kTimesMore = 8;
  const Search few = FindAll(GetParam().make(kFew).state);
  const Search many = FindAll(GetParam().make(kFew * kTimesMore).state);
  EXPECT_LT(many.looked_at, 2 * kTimesMore * few.looked_at + 2 * kTimesMore * kFew)
      << few.looked_at << ", " << many.looked_at;
  if (!GetParam().finds_all) return;
  const size_t lacking = GetParam().name == std::string("half_complete") ? kFew / 2 : kFew;
  EXPECT_EQ(few.found, lacking);
}

INSTANTIATE_TEST_SUITE_P(Jobs, RankFinderCostTest, testing::ValuesIn(kScenarios),
                         [](const auto& info) { return std::string(info.param.name); });

// However many sizes of the world the others got.
TEST(RankMapTest, ARankIsFoundWhereManyWorldsAreClaimed) {
  JobBuilder job(40);
  job.comm().members.erase(39);
  Of(&job, 0).liveness = Liveness::kSilent;
  for (int rank = 20; rank < 40; ++rank) Of(&job, rank).world_size = 100 + rank;
  for (int rank = 21; rank < 39; ++rank) {
    const uint64_t id = static_cast<uint64_t>(rank);
    job.AddCommunicator(id, "other", {rank, rank - 1});
    job.comm().members.erase(1);
  }
  RankFinder finder(job.state);
  for (const auto& [id, comm] : job.state.communicators) {
    if (id != kDp) finder.Find(comm, {{1, 1}});
  }
  const RankProcesses found = finder.Find(job.state.communicators.at(kDp), {{39, 39}});
  EXPECT_EQ(found.processes, (std::map<int32_t, int32_t>{{39, 39}}));
}

}  // namespace
}  // namespace rollcall
