// SPDX-License-Identifier: Apache-2.0
#include "security/grants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool Fits(const std::string& grant, SubjectKind kind, const std::string& name) {
  const absl::StatusOr<Grant> parsed = ParseGrant(grant);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() && FindGrant({*parsed}, {{kind, name}}) != nullptr;
}

TEST(GrantsTest, AGrantHasRoleTenantsAndHosts) {
  const absl::StatusOr<Grant> grant = ParseGrant(
      "agent=spiffe://corp/ns/ml/sa/agent,tenant=a,tenant=b,host=*.nodes.example,"
      "host=x");
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->role, Role::kAgent);
  EXPECT_EQ(grant->pattern, "spiffe://corp/ns/ml/sa/agent");
  EXPECT_THAT(grant->tenants, ElementsAre("a", "b"));
  EXPECT_THAT(grant->hosts, ElementsAre("*.nodes.example", "x"));
}

TEST(GrantsTest, AGrantWithoutTenantGivesTheDefaultOne) {
  const absl::StatusOr<Grant> grant = ParseGrant("viewer=dns:grafana.example");
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->kind, SubjectKind::kDnsName);
  EXPECT_EQ(grant->pattern, "grafana.example");
  EXPECT_THAT(grant->tenants, ElementsAre("default"));
  EXPECT_THAT(grant->hosts, ElementsAre());
}

struct Malformed {
  const char* name;
  const char* text;
  const char* why;
};

void PrintTo(const Malformed& row, std::ostream* out) { *out << row.name; }

class MalformedGrantTest : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedGrantTest, TheErrorSaysWhyAndShowsTheForm) {
  const absl::StatusOr<Grant> grant = ParseGrant(GetParam().text);
  ASSERT_FALSE(grant.ok());
  EXPECT_THAT(std::string(grant.status().message()), HasSubstr(GetParam().why));
  EXPECT_THAT(std::string(grant.status().message()), HasSubstr("--grant=ROLE=PATTERN"));
}

constexpr Malformed kMalformed[] = {
    {"empty", "", "is missing"},
    {"no_pattern", "agent", "is missing"},
    {"empty_pattern", "agent=", "empty"},
    {"empty_dns_name", "agent=dns:", "empty"},
    {"unknown_role", "root=dns:a", "'root' is not agent"},
    {"everybody", "operator=*", "not a URI"},
    {"bare_name", "viewer=grafana", "not a URI"},
    {"unknown_key", "viewer=dns:a,tennant=b", "tennant=b is neither"},
    {"empty_tenant", "viewer=dns:a,tenant=", "is not a tenant"},
    {"tenant_with_slash", "viewer=dns:a,tenant=a/b", "is not a tenant"},
    {"host_of_a_viewer", "viewer=dns:a,host=b", "only an agent"},
    {"host_with_two_stars", "agent=dns:a,host=*.*.b", "is not a host"},
    {"trailing_comma", "viewer=dns:a,", "is neither"},
};

INSTANTIATE_TEST_SUITE_P(All, MalformedGrantTest, testing::ValuesIn(kMalformed),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GrantsTest, AStarStandsForOnePartOfAUri) {
  const std::string grant = "viewer=spiffe://corp/ns/*/sa/dash-*";
  EXPECT_TRUE(Fits(grant, SubjectKind::kUri, "spiffe://corp/ns/ml/sa/dash-board"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kUri, "spiffe://corp/ns/ml/x/sa/dash-board"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kUri, "spiffe://corp/ns//sa/dash-board"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kUri, "spiffe://corp/ns/ml/sa/dash-"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kUri, "spiffe://corp/ns/ml/sa/dash-board/x"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kUri, "spiffe://CORP/ns/ml/sa/dash-board"));
}

TEST(GrantsTest, SeveralStarsInOnePartTryAllEnds) {
  EXPECT_TRUE(Fits("viewer=urn:*ab*b", SubjectKind::kUri, "urn:xabab_b"));
  EXPECT_TRUE(Fits("viewer=urn:*ab", SubjectKind::kUri, "urn:abab"));
  EXPECT_FALSE(Fits("viewer=urn:*ab*b", SubjectKind::kUri, "urn:xab"));
}

TEST(GrantsTest, ADnsNameIsComparedWithoutCaseByLabels) {
  EXPECT_TRUE(Fits("agent=dns:*.Nodes.example", SubjectKind::kDnsName, "node-1.nodes.EXAMPLE"));
  EXPECT_FALSE(Fits("agent=dns:*.nodes.example", SubjectKind::kDnsName, "a.b.nodes.example"));
  EXPECT_FALSE(Fits("agent=dns:*.nodes.example", SubjectKind::kDnsName, "nodes.example"));
}

TEST(GrantsTest, AStarStandsForOnePartOfAJwtSubject) {
  const std::string grant = "agent=sub:system:serviceaccount:rollcall:*";
  EXPECT_TRUE(Fits(grant, SubjectKind::kJwtSubject, "system:serviceaccount:rollcall:agent"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kJwtSubject, "system:serviceaccount:rollcall:a:b"));
  EXPECT_FALSE(Fits(grant, SubjectKind::kJwtSubject, "system:serviceaccount:other:agent"));
}

TEST(GrantsTest, ANameOfAnotherKindNeverFits) {
  EXPECT_FALSE(Fits("viewer=sub:a", SubjectKind::kUri, "sub:a"));
  EXPECT_FALSE(Fits("viewer=sub:a", SubjectKind::kUri, "a"));
  EXPECT_FALSE(Fits("viewer=dns:a", SubjectKind::kJwtSubject, "a"));
  EXPECT_FALSE(Fits("viewer=urn:a", SubjectKind::kJwtSubject, "urn:a"));
}

TEST(GrantsTest, TheFirstGrantThatFitsDecides) {
  const std::vector<Grant> grants = {*ParseGrant("operator=dns:a,tenant=t"),
                                     *ParseGrant("viewer=dns:*,tenant=*")};
  EXPECT_EQ(FindGrant(grants, {{SubjectKind::kDnsName, "a"}}), grants.data());
  EXPECT_EQ(FindGrant(grants, {{SubjectKind::kDnsName, "b"}}), &grants[1]);
  EXPECT_EQ(FindGrant(grants, {}), nullptr);
}

}  // namespace
}  // namespace rollcall
