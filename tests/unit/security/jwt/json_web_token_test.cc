// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/json_web_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test_keys.h"

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNowS = 1'800'000'000;
const JwtRules kRules = {"rollcall", "https://kubernetes.default.svc"};  // NOLINT

// As the API server writes them for a pod.
std::string Claims(const std::string& more = "", const std::string& audience = R"(["rollcall"])") {
  return absl::StrCat(R"({"aud":)", audience, R"(,"exp":1800003600,"iat":1800000000,)",
                      R"("iss":"https://kubernetes.default.svc","nbf":1800000000,)",
                      R"("kubernetes.io":{"namespace":"ml","node":{"name":"node-17","uid":"u"},)",
                      R"("pod":{"name":"p","uid":"u"},"serviceaccount":{"name":"agent"}},)",
                      R"("sub":"system:serviceaccount:ml:agent")", more, "}");
}

// One of the claims replaced.
std::string With(const std::string& from, const std::string& to) {
  std::string claims = Claims();
  const size_t at = claims.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return claims.replace(at, from.size(), to);
}

std::string Header(const std::string& algorithm, const std::string& id,
                   const std::string& more = "") {
  return absl::StrCat(R"({"alg":")", algorithm, R"(","kid":")", id, "\"", more, "}");
}

std::string Message(const std::string& header, const std::string& claims) {
  return absl::StrCat(ToBase64Url(header), ".", ToBase64Url(claims));
}

std::string Signed(const TestKey& key, const std::string& header, const std::string& claims) {
  const std::string message = Message(header, claims);
  return absl::StrCat(message, ".", ToBase64Url(key.Sign(message)));
}

std::string Signed(const TestKey& key, const std::string& claims = Claims()) {
  return Signed(key, Header(key.algorithm(), key.id(), R"(,"typ":"JWT")"), claims);
}

class JsonWebTokenTest : public testing::Test {
 protected:
  static const TestKey& rsa() {
    static const TestKey key = TestKey::Rsa("rsa");
    return key;
  }
  static const TestKey& ec() {
    static const TestKey key = TestKey::Ec("ec");
    return key;
  }
  static absl::StatusOr<JwtClaims> Verify(const std::string& jwt, int64_t now_s = kNowS) {
    return VerifyJwt(jwt, *KeySet::Parse(KeySetText({rsa().Json(), ec().Json()})), kRules, now_s);
  }
  static void ExpectRefused(const std::string& jwt, const std::string& why, int64_t now_s = kNowS) {
    const auto claims = Verify(jwt, now_s);
    ASSERT_FALSE(claims.ok()) << why;
    EXPECT_EQ(claims.status().code(), absl::StatusCode::kUnauthenticated);
    EXPECT_THAT(std::string(claims.status().message()), HasSubstr(why));
  }
};

TEST_F(JsonWebTokenTest, ATokenOfKubernetesIsVerified) {
  for (const TestKey* key : {&rsa(), &ec()}) {
    const auto claims = Verify(Signed(*key));
    ASSERT_TRUE(claims.ok()) << claims.status();
    EXPECT_EQ(claims->subject, "system:serviceaccount:ml:agent");
    EXPECT_EQ(claims->node, "node-17");
    EXPECT_EQ(claims->expires_s, 1'800'003'600);
  }
  EXPECT_TRUE(Verify(Signed(ec(), Claims("", R"("rollcall")"))).ok());
  EXPECT_TRUE(Verify(Signed(ec(), Claims("", R"(["a","rollcall"])"))).ok());
}

TEST_F(JsonWebTokenTest, AnotherAlgorithmIsRefusedWhateverTheSignature) {
  for (const char* none : {"none", "None", "NONE", "nOnE", ""}) {
    ExpectRefused(Message(Header(none, "rsa"), Claims()) + ".", "neither RS256 nor ES256");
  }
  for (const char* other : {"HS256", "RS512", "PS256", "ES384", "EdDSA", "rs256"}) {
    ExpectRefused(Signed(rsa(), Header(other, "rsa"), Claims()), "neither RS256 nor ES256");
  }
}

TEST_F(JsonWebTokenTest, ThePublicKeyIsNotASecretOfAnHmac) {
  for (const char* algorithm : {"HS256", "RS256"}) {
    const std::string message = Message(Header(algorithm, "rsa"), Claims());
    const std::string mac = HmacSha256(rsa().PublicPem(), message);
    EXPECT_FALSE(Verify(absl::StrCat(message, ".", ToBase64Url(mac))).ok());
  }
}

TEST_F(JsonWebTokenTest, TheHeaderCannotChooseTheKind) {
  ExpectRefused(Signed(rsa(), Header("RS256", "ec"), Claims()), "does not match its key");
  ExpectRefused(Signed(ec(), Header("ES256", "rsa"), Claims()), "does not match its key");
  const TestKey own = TestKey::Ec("ec");  // the attacker's, with the id of ours
  ExpectRefused(Signed(own), "signature is wrong");
  const std::string embedded = absl::StrCat(",\"jwk\":", own.Json());
  ExpectRefused(Signed(own, Header("ES256", "ec", embedded), Claims()), "signature is wrong");
  ExpectRefused(Signed(ec(), Header("ES256", "ec", R"(,"crit":["exp"])"), Claims()), "extensions");
}

TEST_F(JsonWebTokenTest, DistinguishesAnUnknownKeyFromAWrongSignature) {
  EXPECT_EQ(Verify(Signed(TestKey::Ec("new"))).status().code(), absl::StatusCode::kNotFound);
  ExpectRefused(Signed(ec(), R"({"alg":"ES256"})", Claims()), "no 'kid'");
}

TEST_F(JsonWebTokenTest, AChangedTokenIsRefused) {
  const std::string jwt = Signed(ec());
  const size_t dot = jwt.find('.'), second = jwt.rfind('.');
  ExpectRefused(
      jwt.substr(0, dot + 1) + ToBase64Url(With("ml:agent", "ml:admin")) + jwt.substr(second),
      "signature is wrong");
  ExpectRefused(jwt.substr(0, second + 1), "signature is wrong");
  ExpectRefused(jwt + "=", "signature is wrong");
  ExpectRefused(jwt + ".", "three parts");
  ExpectRefused(jwt.substr(0, second), "three parts");
  ExpectRefused(" " + jwt, "base64url");
  ExpectRefused("..", "not JSON");
  ExpectRefused(std::string(20'000, 'a'), "longer than 16 KiB");
  ExpectRefused(std::string("a\0b.c.d", 7), "base64url");
}

TEST_F(JsonWebTokenTest, TimesHaveALeewayOfAMinute) {
  const std::string jwt = Signed(ec());
  EXPECT_TRUE(Verify(jwt, 1'800'003'659).ok());
  ExpectRefused(jwt, "expired", 1'800'003'660);
  EXPECT_TRUE(Verify(jwt, 1'799'999'940).ok());
  ExpectRefused(jwt, "not valid yet", 1'799'999'939);
}

struct BadClaims {
  const char* name;
  std::string claims;
  const char* why;
};

void PrintTo(const BadClaims& row, std::ostream* out) { *out << row.name; }

class BadClaimsTest : public JsonWebTokenTest, public testing::WithParamInterface<BadClaims> {};

TEST_P(BadClaimsTest, AreRefusedThoughTheSignatureIsRight) {
  ExpectRefused(Signed(ec(), GetParam().claims), GetParam().why);
}

const BadClaims kBadClaims[] = {
    {"other_audience", Claims("", R"(["vault"])"), "audience"},
    {"part_of_the_audience", Claims("", R"("rollcall2")"), "audience"},
    {"audience_of_another_type", Claims("", R"({"rollcall":1})"), "audience"},
    {"audience_in_a_list_of_lists", Claims("", R"([["rollcall"]])"), "audience"},
    {"no_audience", With(R"("aud")", R"("oud")"), "audience"},
    {"other_issuer", With("default.svc", "default.svc2"), "issuer"},
    {"no_expiry", With(R"("exp")", R"("axp")"), "no time of expiry"},
    {"expiry_as_text", With("1800003600", R"("1800003600")"), "no time of expiry"},
    {"expiry_too_large", With("1800003600", "9223372036854775807"), "no time of expiry"},
    {"expiry_huge", With("1800003600", "1e300"), "no time of expiry"},
    {"expiry_negative", With("1800003600", "-5"), "no time of expiry"},
    {"start_as_text", With(R"("nbf":1800000000)", R"("nbf":"no")"), "nbf is not a time"},
    {"no_subject", With(R"("sub")", R"("sab")"), "no subject"},
    {"subject_as_list", With(R"("system:serviceaccount:ml:agent")", R"(["a"])"), "no subject"},
    {"two_subjects", Claims(R"(,"sub":"system:serviceaccount:ml:admin")"), "a duplicate name"},
    {"two_audiences", Claims(R"(,"aud":"x")"), "a duplicate name"},
    {"nul_in_the_subject", With("ml:agent", R"(ml:agent\u0000)"), "control characters"},
    {"deep", Claims(absl::StrCat(R"(,"x":)", std::string(1000, '['), std::string(1000, ']'))),
     "levels"},
    {"no_object", "[]", "not a JSON object"},
};

INSTANTIATE_TEST_SUITE_P(All, BadClaimsTest, testing::ValuesIn(kBadClaims),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(JsonWebTokenTest, WithoutAnAudienceNoTokenIsAccepted) {
  EXPECT_FALSE(VerifyJwt(Signed(ec(), Claims("", R"([""])")),
                         *KeySet::Parse(KeySetText({ec().Json()})), {"", ""}, kNowS)
                   .ok());
}

TEST_F(JsonWebTokenTest, AnAgentSpeaksForTheNodeOfItsPod) {
  const JwtClaims claims = *Verify(Signed(ec()));
  const auto agent =
      IdentifyJwt(claims, {*ParseGrant("agent=sub:system:serviceaccount:ml:agent,tenant=t")});
  ASSERT_TRUE(agent.ok()) << agent.status();
  EXPECT_THAT(agent->roles, ElementsAre(Role::kAgent));
  EXPECT_THAT(agent->hosts, ElementsAre("node-17"));
  EXPECT_THAT(agent->tenants, ElementsAre("t"));
  EXPECT_EQ(agent->expires_s, claims.expires_s + 60);
  EXPECT_EQ(agent->credential, "jwt " + claims.sha256);
  const auto other =
      IdentifyJwt(claims, {*ParseGrant("agent=sub:system:serviceaccount:ml:agent,host=other")});
  EXPECT_THAT(other->hosts, ElementsAre("other"));
}

TEST_F(JsonWebTokenTest, ANodeIsNeverAWildcardAndAViewerHasNone) {
  JwtClaims claims;
  claims.subject = "system:serviceaccount:ml:agent";
  for (const char* node : {"*", "*.example", "", "a/b"}) {
    claims.node = node;
    EXPECT_THAT(IdentifyJwt(claims, {*ParseGrant("agent=sub:system:*:*:*")})->hosts, IsEmpty());
  }
  claims.node = "node-1";
  EXPECT_THAT(IdentifyJwt(claims, {*ParseGrant("viewer=sub:system:*:*:*")})->hosts, IsEmpty());
}

TEST_F(JsonWebTokenTest, TheRefusalNamesTheGrantThatASubjectLacks) {
  const auto identity = IdentifyJwt(*Verify(Signed(ec())), {});
  ASSERT_FALSE(identity.ok());
  EXPECT_THAT(std::string(identity.status().message()),
              HasSubstr("--grant=ROLE=sub:system:serviceaccount:ml:agent"));
}

}  // namespace
}  // namespace rollcall
