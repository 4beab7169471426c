// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace rollcall {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

v1::Incident Hang() {
  v1::Incident incident;
  incident.set_job("train");
  incident.set_ranks(4);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->set_certainty("likely");
  verdict->set_culprit_ranks("3");
  verdict->set_waiting_rank_ranges("0-2");
  verdict->mutable_communicator()->set_name("dp");
  verdict->mutable_call()->set_operation("AllReduce");
  verdict->mutable_call()->set_position(8812);
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_rank(3);
  culprit->set_host("node-17");
  culprit->set_at("/x/train.py:212 in validate");
  return incident;
}

struct CompareCase {
  const char* name;
  std::function<void(v1::Incident*)> change;
  bool is_alike;
  std::vector<std::string> differ;
};

std::ostream& operator<<(std::ostream& out, const CompareCase& c) { return out << c.name; }

class CompareTest : public testing::TestWithParam<CompareCase> {};

TEST_P(CompareTest, NamesWhatDiffers) {
  v1::Incident second = Hang();
  GetParam().change(&second);
  const Comparison comparison = Compare(Hang(), second);
  EXPECT_EQ(comparison.is_alike, GetParam().is_alike);
  std::vector<std::string> differ;
  for (const ComparedFact& fact : comparison.facts) {
    if (fact.differs()) differ.push_back(fact.name);
  }
  EXPECT_EQ(differ, GetParam().differ);
}

v1::Verdict* Root(v1::Incident* incident) { return incident->mutable_verdicts(0); }

const CompareCase kCases[] = {
    {"equal", [](v1::Incident*) {}, true, {}},
    {"another_host_and_rank",
     [](v1::Incident* i) {
       Root(i)->mutable_culprits(0)->set_host("node-4");
       Root(i)->set_culprit_ranks("7");
     },
     true,
     {"culprits", "hosts"}},
    {"a_later_position",
     [](v1::Incident* i) { Root(i)->mutable_call()->set_position(9000); },
     true,
     {"position"}},
    {"another_place",
     [](v1::Incident* i) { Root(i)->mutable_culprits(0)->set_at("/x/train.py:80 in load"); },
     false,
     {"at"}},
    {"another_cause", [](v1::Incident* i) { Root(i)->set_cause("rank_died"); }, false, {"cause"}},
    {"nothing_is_known",
     [](v1::Incident* i) { i->clear_verdicts(); },
     false,
     {"cause", "certainty", "culprits", "hosts", "at", "waiting", "communicator", "call",
      "position"}},
};

INSTANTIATE_TEST_SUITE_P(All, CompareTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

TEST(ComparisonTest, TwoWithoutAVerdictAreNotAlike) {
  EXPECT_FALSE(Compare(v1::Incident(), v1::Incident()).is_alike);
}

TEST(ComparisonTest, TheTableMarksWhatDiffersAndFitsATicket) {
  v1::Incident second = Hang();
  Root(&second)->mutable_culprits(0)->set_host(std::string(120, 'h'));
  const std::string text = ComparisonToText(Compare(Hang(), second), "a\x1b[2J", "b");
  EXPECT_THAT(text, HasSubstr("The two hangs are alike"));
  EXPECT_THAT(text, ContainsRegex("What\\s+differs: hosts"));
  EXPECT_THAT(text, HasSubstr("* hosts          node-17"));
  EXPECT_THAT(text, HasSubstr("  cause          missing_rank"));
  EXPECT_THAT(text, HasSubstr("a?[2J"));
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_LE(text.find('\n', at) - at, 100u);
}

TEST(ComparisonTest, JsonHasEachFact) {
  const auto json = nlohmann::json::parse(ComparisonToJson(Compare(Hang(), Hang())));
  EXPECT_EQ(json["alike"], true);
  EXPECT_EQ(json["facts"][0]["name"], "job");
  EXPECT_EQ(json["facts"][0]["first"], "train");
  EXPECT_EQ(json["facts"][0]["differs"], false);
}

}  // namespace
}  // namespace rollcall
