// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/say_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "look_builder.h"

namespace rollcall {
namespace {

using Json = nlohmann::json;
using Outcome = LookedAtJob::Outcome;

LookedAtJob Job(const std::string& name, Outcome outcome, const std::string& why) {
  LookedAtJob job;
  job.outcome = outcome;
  job.incident.set_job(name);
  job.why = why;
  job.ranks = 2;
  job.world_size = 4;
  job.hosts = {"node-1"};
  return job;
}

// One after the other.
std::vector<Json> Documents(const std::vector<LookedAtJob>& jobs,
                            const std::vector<v1::HostLook>& looks = {}) {
  std::vector<Json> documents;
  std::string text = JobsAsJson(jobs, looks);
  for (size_t end = text.find("\n}\n"); !text.empty(); end = text.find("\n}\n")) {
    documents.push_back(Json::parse(text.substr(0, end + 3)));
    text.erase(0, end + 3);
  }
  return documents;
}

TEST(JobsAsJsonTest, SaysWhyItCannotBeToldAndWhatWasNotSeen) {
  LookedAtJob job = Job("train", Outcome::kCannotTell, "rank 1 is in a \x1b[2Jdebugger");
  job.unseen = {"rank 0: no stacks"};
  v1::HostLook look;
  look.add_unseen("process 7 did not answer");
  const std::vector<Json> documents = Documents({job}, {look});
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0]["job"], "train");
  EXPECT_EQ(documents[0]["verdicts"], Json::array());
  EXPECT_EQ(documents[0]["look"],
            Json::parse(R"({"outcome": "cannot_tell", "why": "rank 1 is in a ?[2Jdebugger",
                            "ranks": 2, "world_size": 4, "hosts": ["node-1"],
                            "unseen": ["rank 0: no stacks", "process 7 did not answer"], "logs": []})"));
}

TEST(JobsAsJsonTest, JobsThatHangAreFirstAndThoseThatGoOnAreLeftOut) {
  const std::vector<Json> documents =
      Documents({Job("a", Outcome::kGoesOn, "its ranks move"),
                 Job("b", Outcome::kCannotTell, "too late"), Job("c", Outcome::kHangs, "")});
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0]["job"], "c");
  EXPECT_EQ(documents[0]["look"]["outcome"], "hangs");
  EXPECT_EQ(documents[1]["job"], "b");
}

TEST(JobsAsJsonTest, ThereIsAlwaysADocument) {
  const std::vector<Json> goes_on = Documents({Job("a", Outcome::kGoesOn, "its ranks move")});
  ASSERT_EQ(goes_on.size(), 1u);
  EXPECT_EQ(goes_on[0]["look"]["why"], "its ranks move");
  v1::HostLook gone;
  gone.set_host("gone");
  gone.set_error("no route");
  const std::vector<Json> none = Documents({}, {gone});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0]["look"]["outcome"], "no_job");
  EXPECT_EQ(none[0]["look"]["unseen"], Json::parse(R"(["host gone: no route"])"));
}

}  // namespace
}  // namespace rollcall
