// SPDX-License-Identifier: Apache-2.0
#include "security/identity.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

Identity WithHosts(std::vector<std::string> hosts) {
  Identity identity;
  identity.hosts = std::move(hosts);
  return identity;
}

TEST(IdentityTest, AnAgentSpeaksForItsHostOnly) {
  const Identity agent = WithHosts({"node-17.cluster.example"});
  EXPECT_TRUE(agent.MaySpeakFor("node-17.cluster.example"));
  EXPECT_TRUE(agent.MaySpeakFor("NODE-17.cluster.example"));
  EXPECT_FALSE(agent.MaySpeakFor("node-17")) << "node-17.other.example would say so too";
  EXPECT_FALSE(agent.MaySpeakFor("node-1"));
  EXPECT_FALSE(agent.MaySpeakFor("node-17.other.example"));
  EXPECT_FALSE(agent.MaySpeakFor(""));
}

TEST(IdentityTest, AShortNameIsNotAnotherHosts) {
  const Identity agent = WithHosts({"node-17"});
  EXPECT_TRUE(agent.MaySpeakFor("Node-17"));
  EXPECT_FALSE(agent.MaySpeakFor("node-17.cluster.example"));
  const Identity both = WithHosts({"node-17", "node-17.cluster.example"});
  EXPECT_TRUE(both.MaySpeakFor("node-17"));
  EXPECT_TRUE(both.MaySpeakFor("node-17.cluster.example"));
}

TEST(IdentityTest, AnAgentWithoutHostsSpeaksForNoHost) {
  EXPECT_FALSE(WithHosts({}).MaySpeakFor("node-17"));
}

TEST(IdentityTest, AWildcardStandsForOneLabel) {
  const Identity agent = WithHosts({"*.nodes.example"});
  EXPECT_TRUE(agent.MaySpeakFor("node-17.nodes.example"));
  EXPECT_FALSE(agent.MaySpeakFor("a.node-17.nodes.example"));
  EXPECT_FALSE(agent.MaySpeakFor("nodes.example"));
  EXPECT_FALSE(agent.MaySpeakFor(".nodes.example"));
  EXPECT_FALSE(agent.MaySpeakFor("node-17"));
  EXPECT_FALSE(agent.MaySpeakFor("*"));
}

TEST(IdentityTest, AnOperatorReadsToo) {
  Identity caller;
  caller.roles = {Role::kOperator};
  EXPECT_TRUE(caller.Has(Role::kOperator));
  EXPECT_TRUE(caller.Has(Role::kViewer));
  EXPECT_FALSE(caller.Has(Role::kAgent));
}

TEST(IdentityTest, AViewerAndAnAgentHaveOneRoleEach) {
  Identity caller;
  caller.roles = {Role::kViewer};
  EXPECT_FALSE(caller.Has(Role::kOperator));
  EXPECT_FALSE(caller.Has(Role::kAgent));
  caller.roles = {Role::kAgent};
  EXPECT_FALSE(caller.Has(Role::kViewer));
}

TEST(IdentityTest, AViewerSeesItsTenantsOnly) {
  Identity viewer;
  viewer.tenants = {"team-a", "team-b"};
  EXPECT_TRUE(viewer.MaySeeTenant("team-b"));
  EXPECT_FALSE(viewer.MaySeeTenant("team-c"));
  EXPECT_FALSE(viewer.MaySeeTenant(""));
  EXPECT_FALSE(viewer.MaySeeAllTenants());
  viewer.tenants = {kAll};
  EXPECT_TRUE(viewer.MaySeeTenant("team-c"));
}

TEST(IdentityTest, TheOwnerMayDoEverything) {
  const Identity owner = OwnerIdentity("uid 1000");
  for (const Role role : {Role::kAgent, Role::kViewer, Role::kOperator}) {
    EXPECT_TRUE(owner.Has(role));
    EXPECT_EQ(ParseRole(RoleName(role)), role);
  }
  EXPECT_TRUE(owner.MaySeeAllTenants());
  EXPECT_TRUE(owner.MaySpeakFor("any"));
  EXPECT_EQ(ParseRole("root"), std::nullopt);
}

}  // namespace
}  // namespace rollcall
