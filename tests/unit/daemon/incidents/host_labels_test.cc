// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/host_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(HostLabelsTest, ReadsLinesOfAHostAndItsLabels) {
  const auto labels =
      ParseHostLabels("# racks\nnode-17 switch=leaf-3\track=r12 # new\r\n\nnode-17 row=4\n");
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels,
            (HostLabels{{"node-17", {{"switch", "leaf-3"}, {"rack", "r12"}, {"row", "4"}}}}));
}

TEST(HostLabelsTest, NamesTheLineThatItCannotRead) {
  for (const char* wrong : {"\nnode-17", "\nnode-17 switch", "\nnode-17 switch=", "\nnode-17 a b=c",
                            "\nnode-17 x/y=1"}) {
    const auto labels = ParseHostLabels(wrong);
    ASSERT_TRUE(absl::IsInvalidArgument(labels.status())) << wrong;
    EXPECT_THAT(std::string(labels.status().message()), testing::HasSubstr("line 2: "));
    EXPECT_THAT(std::string(labels.status().message()),
                testing::HasSubstr("node-17 switch=leaf-3"));
  }
}

TEST(HostLabelsTest, AnIncidentGetsTheLabelsOfItsCulpritsHosts) {
  v1::Incident incident;
  incident.add_verdicts()->add_culprits()->set_host("node-1");
  incident.mutable_verdicts(0)->add_culprits()->set_host("node-1");
  incident.mutable_verdicts(0)->add_other_culprit_hosts("node-2");
  incident.add_verdicts()->add_culprits()->set_host("node-3");
  const HostLabels labels = {
      {"node-1", {{"switch", "a"}}}, {"node-2", {{"switch", "b"}}}, {"node-3", {{"switch", "c"}}}};
  SetHostLabels(labels, &incident);
  SetHostLabels(labels, &incident);
  ASSERT_EQ(incident.host_labels_size(), 2);
  EXPECT_EQ(incident.host_labels(0).host(), "node-1");
  EXPECT_EQ(incident.host_labels(1).value(), "b");
}

}  // namespace
}  // namespace rollcall
