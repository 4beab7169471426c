// SPDX-License-Identifier: Apache-2.0
#include "security/certificate_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CertificateNames WithUris(std::vector<std::string> uris) {
  CertificateNames names;
  names.uris = std::move(uris);
  names.not_after_s = 2'000'000'000;
  return names;
}

Identity Identify(const CertificateNames& names, const std::vector<Grant>& grants = {}) {
  const absl::StatusOr<Identity> identity = IdentifyCertificate(names, {{}, grants});
  EXPECT_TRUE(identity.ok()) << identity.status();
  return identity.ok() ? *identity : Identity();
}

TEST(CertificateIdentityTest, AnAgentHasTheHostsAndTenantsOfItsName) {
  const Identity agent = Identify(WithUris(
      {"spiffe://rollcall/rollcall/agent/host/node-17/host/node-18.example/tenant/a/tenant/b"}));
  EXPECT_THAT(agent.roles, ElementsAre(Role::kAgent));
  EXPECT_THAT(agent.hosts, ElementsAre("node-17", "node-18.example"));
  EXPECT_THAT(agent.tenants, ElementsAre("a", "b"));
  EXPECT_EQ(agent.expires_s, 2'000'000'000);
  EXPECT_THAT(agent.name, HasSubstr("certificate spiffe://rollcall/rollcall/agent/host/node-17"));
}

TEST(CertificateIdentityTest, DnsNamesOfAnAgentAreHostsToo) {
  CertificateNames names = WithUris({"spiffe://rollcall/rollcall/agent"});
  names.dns_names = {"node-17.example", "*.nodes.example", "*", "a..b", std::string("x\0y", 3), ""};
  EXPECT_THAT(Identify(names).hosts, ElementsAre("node-17.example", "*.nodes.example"));
}

TEST(CertificateIdentityTest, AnAgentWithoutHostSpeaksForNoHost) {
  const Identity agent = Identify(WithUris({"spiffe://rollcall/rollcall/agent"}));
  EXPECT_THAT(agent.hosts, IsEmpty());
  EXPECT_FALSE(agent.MaySpeakFor("node-17"));
}

TEST(CertificateIdentityTest, DnsNamesOfAViewerAreNotHosts) {
  CertificateNames names = WithUris({"spiffe://rollcall/rollcall/viewer"});
  names.dns_names = {"node-17"};
  const Identity viewer = Identify(names);
  EXPECT_THAT(viewer.hosts, IsEmpty());
  EXPECT_THAT(viewer.tenants, ElementsAre("default"));
}

TEST(CertificateIdentityTest, AllTenantsIsWrittenOut) {
  EXPECT_TRUE(Identify(WithUris({"spiffe://d/rollcall/operator/all-tenants"})).MaySeeAllTenants());
  EXPECT_FALSE(Identify(WithUris({"spiffe://d/rollcall/operator"})).MaySeeTenant("team-a"));
}

class MalformedNameTest : public testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(MalformedNameTest, GivesNoRoleEvenIfAGrantFits) {
  CertificateNames names = WithUris({GetParam().second});
  names.dns_names = {"a"};
  const absl::StatusOr<Identity> identity =
      IdentifyCertificate(names, {{}, {*ParseGrant("operator=dns:a,tenant=*")}});
  ASSERT_FALSE(identity.ok());
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(identity.status().message()), HasSubstr("spiffe://DOMAIN/rollcall/ROLE"));
}

const std::pair<const char*, std::string> kMalformedNames[] = {
    {"no_role", "spiffe://d/rollcall"},
    {"empty_role", "spiffe://d/rollcall/"},
    {"unknown_role", "spiffe://d/rollcall/daemon"},
    {"role_in_capitals", "spiffe://d/rollcall/Operator"},
    {"trailing_slash", "spiffe://d/rollcall/viewer/"},
    {"empty_part", "spiffe://d/rollcall/agent//host/a"},
    {"dot_dot", "spiffe://d/rollcall/agent/host/../tenant/a"},
    {"percent", "spiffe://d/rollcall/agent/host/node%2D17"},
    {"percent_slash", "spiffe://d/rollcall/viewer%2Fall-tenants"},
    {"nul", std::string("spiffe://d/rollcall/viewer\0/x", 29)},
    {"query", "spiffe://d/rollcall/viewer?tenant=a"},
    {"fragment", "spiffe://d/rollcall/viewer#a"},
    {"star_host", "spiffe://d/rollcall/agent/host/*"},
    {"host_without_value", "spiffe://d/rollcall/agent/host"},
    {"host_of_a_viewer", "spiffe://d/rollcall/viewer/host/a"},
    {"tenant_without_value", "spiffe://d/rollcall/viewer/tenant"},
    {"tenant_and_all_tenants", "spiffe://d/rollcall/viewer/tenant/a/all-tenants"},
    {"unknown_part", "spiffe://d/rollcall/viewer/admin/yes"},
    {"huge", "spiffe://d/rollcall/viewer" +
                 [] {
                   std::string path;
                   for (int i = 0; i < 1000; ++i) path += "/tenant/a";
                   return path;
                 }()},
};

INSTANTIATE_TEST_SUITE_P(All, MalformedNameTest, testing::ValuesIn(kMalformedNames),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(CertificateIdentityTest, TwoNamesOfRollcallsAreRefused) {
  const absl::StatusOr<Identity> identity = IdentifyCertificate(
      WithUris({"spiffe://d/rollcall/viewer/all-tenants", "spiffe://d/rollcall/operator"}), {});
  ASSERT_FALSE(identity.ok());
  EXPECT_THAT(std::string(identity.status().message()), HasSubstr("two names"));
}

TEST(CertificateIdentityTest, OtherNamesNeedAGrant) {
  const CertificateNames names = WithUris({"spiffe://corp/ns/ml/sa/agent"});
  const absl::StatusOr<Identity> refused = IdentifyCertificate(names, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--grant=ROLE=PATTERN"));
  const Identity agent =
      Identify(names, {*ParseGrant("agent=spiffe://corp/ns/ml/sa/agent,tenant=t,host=node-1")});
  EXPECT_THAT(agent.roles, ElementsAre(Role::kAgent));
  EXPECT_THAT(agent.tenants, ElementsAre("t"));
  EXPECT_THAT(agent.hosts, ElementsAre("node-1"));
}

// An authority may also sign names of others, such as those of a federated SPIFFE server.
TEST(CertificateIdentityTest, OnlyTheGivenTrustDomainsCount) {
  const CertificateNames foreign = WithUris({"spiffe://other.example/rollcall/operator"});
  EXPECT_TRUE(IdentifyCertificate(foreign, {}).ok());
  const NameRules rules = {{"prod.example", "lab.example"}, {}};
  const absl::StatusOr<Identity> refused = IdentifyCertificate(foreign, rules);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("gives no role in the trust domain prod.example, lab.example"));
  EXPECT_TRUE(IdentifyCertificate(WithUris({"spiffe://lab.example/rollcall/viewer"}), rules).ok());
  // A name of another domain is one of another system: it takes a grant, and spoils no own name.
  const NameRules granted = {{"prod.example"},
                             {*ParseGrant("viewer=spiffe://other.example/rollcall/operator")}};
  const absl::StatusOr<Identity> viewer = IdentifyCertificate(foreign, granted);
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  EXPECT_THAT(viewer->roles, ElementsAre(Role::kViewer));
  const CertificateNames both = WithUris(
      {"spiffe://other.example/rollcall/nonsense", "spiffe://prod.example/rollcall/viewer"});
  EXPECT_TRUE(IdentifyCertificate(both, rules).ok());
}

TEST(CertificateIdentityTest, AGrantWithoutHostsTakesThoseOfTheCertificate) {
  CertificateNames names;
  names.dns_names = {"node-17.example"};
  EXPECT_THAT(Identify(names, {*ParseGrant("agent=dns:*.example")}).hosts,
              ElementsAre("node-17.example"));
  EXPECT_THAT(Identify(names, {*ParseGrant("agent=dns:*.example,host=other")}).hosts,
              ElementsAre("other"));
}

TEST(CertificateIdentityTest, ACertificateWithoutNamesOrWithThousandsGivesNoRole) {
  EXPECT_FALSE(IdentifyCertificate({}, {{}, {*ParseGrant("viewer=dns:*")}}).ok());
  CertificateNames names;
  names.dns_names.assign(10'000, "a");
  EXPECT_FALSE(IdentifyCertificate(names, {{}, {*ParseGrant("viewer=dns:*")}}).ok());
}

}  // namespace
}  // namespace rollcall
