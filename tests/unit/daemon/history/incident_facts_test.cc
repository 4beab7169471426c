// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/incident_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "histories.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> ValuesOf(const v1::Incident& incident, const std::string& kind) {
  std::vector<std::string> values;
  for (const auto& [known, value] : FactsOf(incident).values) {
    if (known == kind) values.push_back(value);
  }
  return values;
}

TEST(IncidentFactsTest, HasWhatPeopleAskAbout) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  incident.set_tenant("vision");
  v1::Verdict* const root = incident.mutable_verdicts(0);
  root->set_certainty("certain");
  root->mutable_culprits(0)->set_gpu_uuid("GPU-8");
  root->mutable_culprits(0)->set_uid(1007);
  root->mutable_culprits(0)->set_at("/home/x/train.py:212 in validate");
  root->add_other_culprit_hosts("node-3");
  v1::HostLabel* const label = incident.add_host_labels();
  label->set_host("node-17");
  label->set_name("switch");
  label->set_value("leaf-3");
  EXPECT_THAT(ValuesOf(incident, "host"), ElementsAre("node-17", "node-3"));
  EXPECT_THAT(ValuesOf(incident, "gpu"), ElementsAre("GPU-8"));
  EXPECT_THAT(ValuesOf(incident, "user"), ElementsAre("1007"));
  EXPECT_THAT(ValuesOf(incident, "call_site"), ElementsAre("train.py:212 in validate"));
  EXPECT_THAT(ValuesOf(incident, "label:switch"), ElementsAre("leaf-3"));
  EXPECT_THAT(ValuesOf(incident, "cause"), ElementsAre("missing_rank"));
  EXPECT_THAT(ValuesOf(incident, "tenant"), ElementsAre("vision"));
  EXPECT_THAT(ValuesOf(incident, "job"), ElementsAre("train"));
  EXPECT_TRUE(FactsOf(incident).is_certain);
}

TEST(IncidentFactsTest, CountsOnlyWhatWasConfirmed) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  incident.clear_confirmed_at();
  EXPECT_THAT(FactsOf(incident).values, ElementsAre(std::pair<std::string, std::string>("", "")));
}

TEST(IncidentFactsTest, LosesTheJobsRanksFromTheFirstWaitToTheEnd) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");  // closed 60 s later
  incident.set_ranks(64);
  incident.mutable_waits_since()->set_seconds(970);
  EXPECT_EQ(FactsOf(incident).lost_rank_ms, 64 * 90'000);
  incident.clear_waits_since();
  incident.clear_ranks();  // as earlier releases wrote it
  incident.mutable_verdicts(0)->set_waiting_total(7);
  incident.mutable_verdicts(0)->set_culprits_total(1);
  EXPECT_EQ(FactsOf(incident).lost_rank_ms, 8 * 60'000);
}

TEST(IncidentFactsTest, AFrameworkCountsMoreThanWhatItIsBuiltOn) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  EXPECT_THAT(ValuesOf(incident, "framework"), IsEmpty());
  const auto add = [&incident](const std::string& file) {
    v1::Frame* const frame = incident.mutable_stacks(0)->add_threads()->add_frames();
    frame->set_python(true);
    frame->set_file(file);
  };
  add("/opt/lib/python3/site-packages/torch/distributed/c10d.py");
  EXPECT_THAT(ValuesOf(incident, "framework"), ElementsAre("PyTorch"));
  add("/opt/lib/python3/site-packages/deepspeed/runtime/engine.py");
  EXPECT_THAT(ValuesOf(incident, "framework"), ElementsAre("DeepSpeed"));
}

TEST(IncidentFactsTest, OneIncidentHasALimitedNumberOfValues) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  for (int i = 0; i < 1000; ++i) {
    incident.mutable_verdicts(0)->add_other_culprit_hosts(absl::StrCat("node-", 1000 + i));
  }
  EXPECT_EQ(ValuesOf(incident, "host").size(), size_t{kMostValuesOfKind});
  incident.set_job(absl::StrCat(std::string(199, 'x'), "\u00e4\u00e4"));
  EXPECT_EQ(ValuesOf(incident, "job").front(), std::string(199, 'x')) << "no part of a character";
}

TEST(IncidentFactsTest, KnowsItsKinds) {
  for (const std::string& kind : FactKinds()) EXPECT_TRUE(IsFactKind(kind)) << kind;
  EXPECT_TRUE(IsFactKind("label:switch"));
  for (const char* none : {"", "label:", "hosts", "label"}) EXPECT_FALSE(IsFactKind(none)) << none;
}

}  // namespace
}  // namespace rollcall
