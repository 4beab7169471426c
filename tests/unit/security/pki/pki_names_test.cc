// SPDX-License-Identifier: Apache-2.0
#include "security/pki/pki_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PkiRequest Request(const std::string& role, std::vector<std::string> hosts,
                   std::vector<std::string> tenants = {}, const std::string& name = "") {
  return {role, std::move(hosts), std::move(tenants), name, 365};
}

std::string Error(const PkiRequest& request) {
  return std::string(NamesFor(request, "rollcall").status().message());
}

TEST(PkiNamesTest, AnAgentIsNamedAfterItsHost) {
  const PkiNames names =
      NamesFor(Request("agent", {"node-17", "node-17.cluster"}, {"team-a"}), "site").value();
  EXPECT_EQ(names.name, "node-17");
  EXPECT_EQ(names.uri,
            "spiffe://site/rollcall/agent/host/node-17/host/node-17.cluster/tenant/team-a");
  EXPECT_THAT(names.dns_names, ElementsAre("node-17", "node-17.cluster"));
}

TEST(PkiNamesTest, AWildcardIsADnsNameOnly) {
  const PkiNames names =
      NamesFor(Request("agent", {"*.nodes.example"}, {"*"}, "nodes"), "rollcall").value();
  EXPECT_EQ(names.uri, "spiffe://rollcall/rollcall/agent/all-tenants");
  EXPECT_THAT(names.dns_names, ElementsAre("*.nodes.example"));
}

TEST(PkiNamesTest, ADaemonMayHaveAddresses) {
  const PkiNames names =
      NamesFor(Request("daemon", {"daemon.example", "10.0.0.1", "fd00::1"}), "rollcall").value();
  EXPECT_EQ(names.name, "daemon");
  EXPECT_EQ(names.uri, "spiffe://rollcall/rollcall/daemon");
  EXPECT_THAT(names.dns_names, ElementsAre("daemon.example"));
  EXPECT_THAT(names.ip_addresses, ElementsAre("10.0.0.1", "fd00::1"));
}

TEST(PkiNamesTest, APersonHasNoHost) {
  const PkiNames names = NamesFor(Request("viewer", {}, {"a", "b"}, "ann"), "rollcall").value();
  EXPECT_EQ(names.name, "ann");
  EXPECT_EQ(names.uri, "spiffe://rollcall/rollcall/viewer/tenant/a/tenant/b");
  EXPECT_THAT(names.dns_names, IsEmpty());
  EXPECT_EQ(NamesFor(Request("operator", {}), "rollcall")->uri,
            "spiffe://rollcall/rollcall/operator");
}

TEST(PkiNamesTest, RefusesWhatCouldSmuggleAnotherName) {
  for (const char* host : {"a/host/b", "a b", "", "..", "a,b", "*.*", "*", "a\nb"}) {
    EXPECT_THAT(Error(Request("agent", {host}, {}, "n")), HasSubstr("not the name of a host"))
        << host;
  }
  for (const char* host : {"a..b", ".a", "a.", "*.", "*", "*.a..b"}) {
    EXPECT_THAT(Error(Request("agent", {host})), HasSubstr("--host=")) << host;
  }
  EXPECT_EQ(Error(Request("viewer", {}, {std::string(255, 't')})), "");
  for (const char* tenant : {"a/all-tenants", "", ".", "a b", "**"}) {
    EXPECT_THAT(Error(Request("viewer", {}, {tenant})), HasSubstr("--tenant=")) << tenant;
  }
  for (const char* name : {"../x", ".hidden", "ca", "-x", "a/b"}) {
    EXPECT_THAT(Error(Request("viewer", {}, {}, name)), HasSubstr("--name=")) << name;
  }
}

TEST(PkiNamesTest, SaysWhatIsMissingOrTooMuch) {
  EXPECT_THAT(Error(Request("agent", {})), HasSubstr("needs --host=NAME"));
  EXPECT_THAT(Error(Request("daemon", {})), HasSubstr("needs --host=NAME"));
  EXPECT_THAT(Error(Request("agent", {"10.0.0.1"})), HasSubstr("not by an address"));
  EXPECT_THAT(Error(Request("viewer", {"node-1"})), HasSubstr("has no host"));
  EXPECT_THAT(Error(Request("daemon", {"node-1"}, {"a"})), HasSubstr("serves all tenants"));
  EXPECT_THAT(Error(Request("root", {})), HasSubstr("not one of agent, daemon"));
  EXPECT_THAT(Error(Request("agent", std::vector<std::string>(99, std::string(60, 'x')))),
              HasSubstr("too many hosts"));
}

TEST(PkiNamesTest, FindsTheRoleInAUri) {
  EXPECT_EQ(RoleInUri("spiffe://rollcall/rollcall/agent/host/node-17"), "agent");
  EXPECT_EQ(RoleInUri("spiffe://rollcall/rollcall/daemon"), "daemon");
  EXPECT_EQ(RoleInUri("spiffe://rollcall/other/agent"), "");
  EXPECT_EQ(RoleInUri("spiffe://rollcall/rollcall/root"), "");
  EXPECT_EQ(RoleInUri("https://rollcall/rollcall/agent"), "");
  EXPECT_EQ(RoleInUri(""), "");
}

TEST(PkiNamesTest, ADomainIsLowerCase) {
  EXPECT_TRUE(CheckPkiDomain("prod.example").ok());
  EXPECT_FALSE(CheckPkiDomain("Prod").ok());
  EXPECT_FALSE(CheckPkiDomain("a/b").ok());
}

}  // namespace
}  // namespace rollcall
