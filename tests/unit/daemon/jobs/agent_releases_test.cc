// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/agent_releases.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::SizeIs;

AgentName Agent(const std::string& host, const std::string& release) {
  AgentName name;
  name.host = host;
  name.release = release;
  return name;
}

std::vector<std::string> InWords(const std::vector<v1::AgentRelease>& releases) {
  std::vector<std::string> words;
  for (const v1::AgentRelease& one : releases) {
    std::string line = absl::StrCat(one.release(), ": ", one.agents());
    for (const std::string& host : one.hosts()) absl::StrAppend(&line, " ", host);
    words.push_back(line);
  }
  return words;
}

TEST(AgentReleasesTest, ListsTheReleaseWithMostAgentsFirst) {
  AgentReleases releases;
  releases.Add(Agent("b", "1.1.0"));
  releases.Add(Agent("c", "1.2.0"));
  releases.Add(Agent("a", "1.2.0"));
  EXPECT_THAT(InWords(releases.List()), ElementsAre("1.2.0: 2 a c", "1.1.0: 1 b"));
}

TEST(AgentReleasesTest, ForgetsAgentsThatHaveGone) {
  AgentReleases releases;
  releases.Add(Agent("a", "1.1.0"));
  releases.Add(Agent("a", "1.1.0"));
  releases.Remove(Agent("a", "1.1.0"));
  EXPECT_THAT(InWords(releases.List()), ElementsAre("1.1.0: 1 a"));
  releases.Remove(Agent("a", "1.1.0"));
  releases.Remove(Agent("a", "1.1.0"));
  EXPECT_THAT(InWords(releases.List()), ElementsAre());
}

TEST(AgentReleasesTest, LimitsReleasesAndHosts) {
  AgentReleases releases;
  for (int i = 0; i < 40; ++i) {
    releases.Add(Agent(absl::StrCat("host", i), "1.2.0"));
    releases.Add(Agent("one", absl::StrCat("invented ", i)));
  }
  const std::vector<v1::AgentRelease> list = releases.List();
  ASSERT_EQ(list.size(), AgentReleases::kMostReleases);
  EXPECT_EQ(list[0].agents(), 40);
  EXPECT_EQ(list[0].hosts_size(), AgentReleases::kMostHosts);
}

constexpr int kInvented = 40;

void AddInvented(int streams, AgentReleases* releases) {
  for (int i = 0; i < kInvented * streams; ++i) {
    releases->Add(Agent("one", absl::StrCat("0 invented ", i % kInvented)));
  }
}

TEST(AgentReleasesTest, OneHostThatNamesManyReleasesHidesNoOther) {
  AgentReleases releases;
  AddInvented(3, &releases);
  releases.Add(Agent("a", "1.1.0"));
  releases.Add(Agent("b", "1.2.0"));
  const std::vector<std::string> words = InWords(releases.List());
  EXPECT_THAT(words, SizeIs(AgentReleases::kMostReleases));
  EXPECT_THAT(words, IsSupersetOf({"1.1.0: 1 a", "1.2.0: 1 b"}));
}

TEST(AgentReleasesTest, AHostThatNamesManyReleasesHidesNoOtherOfAnotherDaemon) {
  AgentReleases first, second;
  AddInvented(3, &first);
  second.Add(Agent("a", "1.1.0"));
  v1::StatusResponse all, more;
  for (const v1::AgentRelease& one : first.List()) *all.add_agent_releases() = one;
  for (const v1::AgentRelease& one : second.List()) *more.add_agent_releases() = one;
  JoinReleases(more.agent_releases(), all.mutable_agent_releases());
  const std::vector<std::string> words =
      InWords({all.agent_releases().begin(), all.agent_releases().end()});
  EXPECT_THAT(words, SizeIs(AgentReleases::kMostReleases));
  EXPECT_THAT(words, Contains("1.1.0: 1 a"));
}

TEST(AgentReleasesTest, JoinsTheListsOfTwoDaemons) {
  AgentReleases first, second;
  first.Add(Agent("a", "1.1.0"));
  second.Add(Agent("b", "1.1.0"));
  second.Add(Agent("c", "1.2.0"));
  v1::StatusResponse all, more;
  for (const v1::AgentRelease& one : first.List()) *all.add_agent_releases() = one;
  for (const v1::AgentRelease& one : second.List()) *more.add_agent_releases() = one;
  JoinReleases(more.agent_releases(), all.mutable_agent_releases());
  EXPECT_THAT(InWords({all.agent_releases().begin(), all.agent_releases().end()}),
              ElementsAre("1.1.0: 2 a b", "1.2.0: 1 c"));
}

}  // namespace
}  // namespace rollcall
