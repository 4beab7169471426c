// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/unrecorded_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "listed_ranks.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kNowNs = 2'000'000'000;

class UnrecordedBookTest : public testing::Test {
 protected:
  // "tenant/name: ranks of world on hosts".
  std::vector<std::string> Jobs(const Tenants& tenants = Tenants::All()) const {
    std::vector<std::string> words;
    for (const v1::UnrecordedJob& job : book_.Jobs(tenants, kNowNs)) {
      std::string text = absl::StrCat(job.tenant(), "/", job.name(), ": ", job.ranks(), " of ",
                                      job.world_size(), " on");
      for (const std::string& host : job.hosts()) absl::StrAppend(&text, " ", host);
      words.push_back(text);
    }
    return words;
  }

  UnrecordedBook book_;
};

TEST_F(UnrecordedBookTest, JoinsTheRanksOfOneJobOnSeveralHosts) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}, Listed{1}));
  book_.Set(AgentOf("node-2"), ListOfRanks(Listed{2}, Listed{3}, Listed{0, 2, "other"}));
  EXPECT_THAT(Jobs(), ElementsAre("default/train.py: 4 of 4 on node-1 node-2",
                                  "default/train.py-2: 1 of 2 on node-2"));
  const auto found = book_.Find("train.py", "", Tenants::All());
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->hosts, SizeIs(2));
  EXPECT_EQ(found->hosts[1].agent, AgentOf("node-2").id);
  EXPECT_EQ(found->hosts[1].members, 2u);
}

TEST_F(UnrecordedBookTest, AListReplacesTheOneBefore) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}, Listed{1}));
  const uint64_t before = book_.version(Tenants::All());
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0, 2, "b", "", "eval.py"}));
  EXPECT_THAT(Jobs(), ElementsAre("default/eval.py: 1 of 2 on node-1"));
  EXPECT_NE(book_.version(Tenants::All()), before);
}

TEST_F(UnrecordedBookTest, AListGoesWithItsAgent) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}, Listed{1}));
  book_.Remove(AgentOf("node-1").id);
  EXPECT_THAT(Jobs(), IsEmpty());
}

TEST_F(UnrecordedBookTest, AProcessWithoutOthersIsNotADistributedJob) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0, -1}));
  EXPECT_THAT(Jobs(), IsEmpty());
}

TEST_F(UnrecordedBookTest, AnAgentListsOnlyTenantsThatItMayWrite) {
  AgentName agent = AgentOf("node-1");
  agent.tenants = {"a"};
  book_.Set(agent, ListOfRanks(Listed{0, 4, "x", "a"}, Listed{0, 4, "y", "b"}));
  EXPECT_THAT(Jobs(), ElementsAre("a/train.py: 1 of 4 on node-1"));
}

TEST_F(UnrecordedBookTest, JobsOfOtherTenantsDoNotExist) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0, 4, "x", "a"}, Listed{0, 4, "x", "b"}));
  const Tenants only_b = Tenants::Only({"b"});
  EXPECT_THAT(Jobs(only_b), ElementsAre("b/train.py: 1 of 4 on node-1"));
  EXPECT_EQ(book_.Find("train.py", "", only_b)->id.tenant, "b");
  EXPECT_TRUE(absl::IsNotFound(book_.Find("train.py", "a", only_b).status()));
  const uint64_t before = book_.version(only_b);
  book_.Set(AgentOf("node-2"), ListOfRanks(Listed{0, 4, "x", "a"}));
  EXPECT_EQ(book_.version(only_b), before);
}

TEST_F(UnrecordedBookTest, ANameOfSeveralTenantsNeedsTheTenant) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0, 4, "x", "a"}, Listed{0, 4, "x", "b"}));
  const auto found = book_.Find("train.py", "", Tenants::All());
  EXPECT_TRUE(absl::IsInvalidArgument(found.status()));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("a, b"));
  EXPECT_TRUE(book_.Find("train.py", "b", Tenants::All()).ok());
}

TEST_F(UnrecordedBookTest, TheErrorForAnUnknownNameListsTheKnownOnes) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}));
  const auto found = book_.Find("tarin.py", "", Tenants::All());
  EXPECT_TRUE(absl::IsNotFound(found.status()));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("train.py"));
}

TEST_F(UnrecordedBookTest, KeepsSoManyRanksOfAnAgent) {
  v1::UnrecordedProcesses list;
  for (int rank = 0; rank < 10'000; ++rank) AddListed(Listed{rank, 10'000}, &list);
  book_.Set(AgentOf("node-1"), list);
  EXPECT_THAT(Jobs(), ElementsAre("default/train.py: 1024 of 10000 on node-1"));
}

TEST_F(UnrecordedBookTest, TwoAgentsOfAHostListARankOnce) {
  AgentName other = AgentOf("node-1");
  other.id = "from node-1 2";
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}, Listed{1}));
  book_.Set(other, ListOfRanks(Listed{0}, Listed{1}));
  EXPECT_THAT(Jobs(), ElementsAre("default/train.py: 2 of 4 on node-1"));
}

TEST_F(UnrecordedBookTest, RanksOfTwoUsersAreTwoJobs) {
  book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}, Listed{1, 4, "a", "", "train.py", 1001}));
  EXPECT_THAT(Jobs(), SizeIs(2));
}

TEST_F(UnrecordedBookTest, HostileNumbersAndTextsAreCut) {
  v1::UnrecordedProcesses list = ListOfRanks(Listed{INT32_MAX, INT32_MAX, "a", "", "x"});
  list.mutable_processes(0)->set_script(std::string(1 << 20, 'x'));
  list.mutable_processes(0)->mutable_identity()->set_started_ns(INT64_MAX);
  list.mutable_processes(0)->clear_marks();
  book_.Set(AgentOf("node-1"), list);
  const auto jobs = book_.Jobs(Tenants::All(), kNowNs);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_LE(jobs[0].name().size(), 300u);
  EXPECT_LE(jobs[0].world_size(), 1 << 20);
  EXPECT_EQ(jobs[0].since().seconds(), 2);
}

TEST_F(UnrecordedBookTest, AUserWithVeryManyJobsLeavesTheOthersTheirShare) {
  for (const char* host : {"node-1", "node-2"}) {
    v1::UnrecordedProcesses list;
    for (int i = 0; i < 1000; ++i) AddListed(Listed{0, 4, absl::StrCat(host, i)}, &list);
    book_.Set(AgentOf(host), list);
  }
  book_.Set(AgentOf("node-3"), ListOfRanks(Listed{0, 4, "z", "", "zz.py", 1001}));
  const auto jobs = book_.Jobs(Tenants::All(), kNowNs);
  ASSERT_THAT(jobs, SizeIs(UnrecordedBook::kMostJobs));
  EXPECT_EQ(jobs.back().name(), "zz.py");
}

}  // namespace
}  // namespace rollcall
