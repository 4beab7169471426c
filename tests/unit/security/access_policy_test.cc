// SPDX-License-Identifier: Apache-2.0
#include "security/access_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "base/digest/digest.h"
#include "base/edit_file.h"
#include "base/user_names.h"
#include "security/token_edit.h"
#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uid_t kOwner = 1000;
constexpr char kStranger[] = "ipv4:10.0.0.1:41922";
constexpr char kLocal[] = "ipv4:127.0.0.1:41922";

class AccessPolicyTest : public testing::Test {
 protected:
  AccessPolicyTest() : tokens_(tree_.root() + "/tokens.yaml") {
    options_.owner = kOwner;
    options_.tokens = &tokens_;
    options_.now_s = [this] { return now_s_; };
    options_.is_revoked = [this](const std::string& pem) { return revoked_.count(pem) > 0; };
    options_.loopback_user = [this](const PeerAddress&, const PeerAddress&) {
      return loopback_user_;
    };
  }

  std::string AddToken(const std::string& name, Role role, int64_t expires_s = 0) {
    const std::string token = *NewToken();
    TokenEntry entry;
    entry.name = name;
    entry.role = role;
    entry.tenants = {"default"};
    entry.expires_s = expires_s;
    entry.sha256 = Sha256Hex(token);
    EXPECT_TRUE(EditFile(tree_.root() + "/tokens.yaml", true, [&entry](std::string text) {
                  return AppendToken(text, entry);
                }).ok());
    EXPECT_TRUE(tokens_.Poll().ok());
    return token;
  }

  absl::StatusOr<Identity> Identify(const Presented& presented) {
    return policy().Identify(presented);
  }

  // The policy, made at the first use.
  AccessPolicy& policy() {
    if (policy_ == nullptr) policy_ = std::make_unique<AccessPolicy>(options_);
    return *policy_;
  }

  static Presented From(const std::string& peer, const std::string& bearer = "",
                        bool is_encrypted = true) {
    Presented presented;
    presented.peer = peer;
    presented.bearer = bearer;
    presented.is_encrypted = is_encrypted;
    presented.local = "ipv4:127.0.0.1:7655";
    return presented;
  }

  static Presented WithCertificate(const std::string& pem) {
    Presented presented = From(kStranger);
    presented.certificate_pem = pem;
    return presented;
  }

  TemporaryTree tree_;
  TokenFile tokens_;
  AccessOptions options_;
  int64_t now_s_ = kNow;
  std::set<std::string> revoked_;
  std::optional<uid_t> loopback_user_;
  std::unique_ptr<AccessPolicy> policy_;
};

absl::StatusCode CodeOf(const absl::StatusOr<Identity>& identity) {
  return identity.status().code();
}

std::string MessageOf(const absl::StatusOr<Identity>& identity) {
  return std::string(identity.status().message());
}

TEST_F(AccessPolicyTest, TheRefusalNamesWhatAStrangerMustPresent) {
  const auto identity = Identify(From(kStranger));
  EXPECT_EQ(CodeOf(identity), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(identity), HasSubstr("--token-file=FILE"));
  EXPECT_THAT(MessageOf(identity), HasSubstr("--tls-cert=FILE"));
}

TEST_F(AccessPolicyTest, ThisProcessAndUnixSocketsAreTheOwners) {
  for (const char* peer : {"unix:", "unix:/run/rollcall.sock"}) {
    const auto identity = Identify(From(peer, "", /*is_encrypted=*/false));
    ASSERT_TRUE(identity.ok()) << peer;
    EXPECT_TRUE(identity->Has(Role::kOperator));
    EXPECT_TRUE(policy().IsStillValid(*identity));
  }
  EXPECT_FALSE(Identify(From("unix-abstract:x")).ok());
}

TEST_F(AccessPolicyTest, OnLoopbackTheSameUserAndRootAreOwners) {
  for (const uid_t user : {kOwner, uid_t{0}}) {
    loopback_user_ = user;
    const auto identity = Identify(From(kLocal, "", /*is_encrypted=*/false));
    ASSERT_TRUE(identity.ok());
    EXPECT_EQ(identity->name, UserInWords(user));
    EXPECT_TRUE(identity->MaySeeAllTenants());
  }
  loopback_user_ = 1001;
  EXPECT_FALSE(Identify(From(kLocal)).ok());
  loopback_user_ = std::nullopt;
  EXPECT_FALSE(Identify(From(kLocal)).ok());
}

TEST_F(AccessPolicyTest, KnowsNoCallerOnLoopbackWithoutTheOwnAddress) {
  loopback_user_ = kOwner;
  Presented presented = From(kLocal);
  presented.local.clear();
  EXPECT_FALSE(Identify(presented).ok());
}

TEST_F(AccessPolicyTest, TheKernelIsNotAskedAboutOtherHosts) {
  loopback_user_ = kOwner;
  EXPECT_FALSE(Identify(From(kStranger)).ok());
  EXPECT_FALSE(Identify(From("ipv6:[2001:db8::1]:80")).ok());
  EXPECT_FALSE(Identify(From("nonsense")).ok());
}

TEST_F(AccessPolicyTest, ATokenNeedsTlsOrLoopback) {
  const std::string token = AddToken("ci", Role::kViewer);
  EXPECT_TRUE(Identify(From(kStranger, token)).ok());
  EXPECT_TRUE(Identify(From(kLocal, token, /*is_encrypted=*/false)).ok());
  const auto in_clear = Identify(From(kStranger, token, /*is_encrypted=*/false));
  EXPECT_EQ(CodeOf(in_clear), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(in_clear), HasSubstr("over TLS only"));
}

TEST_F(AccessPolicyTest, APresentedTokenDecidesForTheOwnerToo) {
  loopback_user_ = kOwner;
  const auto viewer = Identify(From(kLocal, AddToken("ci", Role::kViewer)));
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  EXPECT_FALSE(viewer->Has(Role::kOperator));
  EXPECT_FALSE(Identify(From(kLocal, *NewToken())).ok());
  EXPECT_FALSE(Identify(From("", *NewToken())).ok());
  options_.is_insecure = true;
  EXPECT_FALSE(AccessPolicy(options_).Identify(From(kStranger, *NewToken())).ok());
}

TEST_F(AccessPolicyTest, ARevokedTokenEndsOpenConnections) {
  const auto identity = Identify(From(kStranger, AddToken("ci", Role::kViewer, now_s_ + 100)));
  ASSERT_TRUE(identity.ok());
  EXPECT_TRUE(policy().IsStillValid(*identity));
  now_s_ += 100;
  EXPECT_FALSE(policy().IsStillValid(*identity));
  now_s_ -= 100;
  tree_.Write("tokens.yaml", "tokens: []\n");
  ASSERT_TRUE(tokens_.Poll().ok());
  EXPECT_FALSE(policy().IsStillValid(*identity));
}

TEST_F(AccessPolicyTest, WithoutATokenFileTheErrorNamesItsFlag) {
  options_.tokens = nullptr;
  const auto identity = Identify(From(kStranger, *NewToken()));
  EXPECT_EQ(CodeOf(identity), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(identity), HasSubstr("start it with --token-file"));
  EXPECT_THAT(MessageOf(Identify(From(kStranger, "eyJ.a.b"))), HasSubstr("--jwks=FILE"));
}

TEST_F(AccessPolicyTest, AJwtGoesToItsVerifier) {
  options_.verify_jwt = [](absl::string_view jwt, int64_t now_s) -> absl::StatusOr<Identity> {
    if (jwt != "a.b.c") return absl::UnauthenticatedError("no");
    return Identity{"jwt", {Role::kAgent}, {"node-1"}, {"default"}, now_s + 10, "jwt x"};
  };
  const auto identity = Identify(From(kStranger, "a.b.c"));
  ASSERT_TRUE(identity.ok());
  EXPECT_TRUE(policy().IsStillValid(*identity));
  now_s_ += 10;
  EXPECT_FALSE(policy().IsStillValid(*identity));
  EXPECT_FALSE(Identify(From(kStranger, "a.b.d")).ok());
}

TEST_F(AccessPolicyTest, AHugeTokenIsRefusedUnread) {
  options_.verify_jwt = [](absl::string_view, int64_t) -> absl::StatusOr<Identity> {
    ADD_FAILURE() << "read";
    return absl::InternalError("");
  };
  EXPECT_THAT(MessageOf(Identify(From(kStranger, std::string(20'000, '.')))),
              HasSubstr("longer than 16 KiB"));
}

TEST_F(AccessPolicyTest, ACertificateSpeaksForItsName) {
  const TestAuthority authority;
  const std::string pem =
      authority.Client("spiffe://rollcall/rollcall/agent/host/node-17").certificate_pem;
  const auto agent = Identify(WithCertificate(pem));
  ASSERT_TRUE(agent.ok()) << agent.status();
  EXPECT_THAT(agent->roles, ElementsAre(Role::kAgent));
  EXPECT_TRUE(agent->MaySpeakFor("node-17"));
  EXPECT_FALSE(agent->MaySpeakFor("node-18"));
  EXPECT_TRUE(policy().IsStillValid(*agent));
}

TEST_F(AccessPolicyTest, ACertificateOfAnotherSystemNeedsAGrant) {
  const TestAuthority authority;
  const std::string pem = authority.Client("spiffe://corp/ns/ml/sa/dashboard").certificate_pem;
  EXPECT_FALSE(Identify(WithCertificate(pem)).ok());
  options_.names.grants = {*ParseGrant("viewer=spiffe://corp/ns/ml/sa/*,tenant=*")};
  const auto viewer = AccessPolicy(options_).Identify(WithCertificate(pem));
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  EXPECT_TRUE(viewer->MaySeeAllTenants());
}

TEST_F(AccessPolicyTest, ARevokedCertificateIsRefusedWithATokenTooAndEndsOpenConnections) {
  const TestAuthority authority;
  const std::string token = AddToken("ci", Role::kViewer);
  const std::string pem = authority.Client("spiffe://d/rollcall/viewer").certificate_pem;
  const auto identity = Identify(WithCertificate(pem));
  ASSERT_TRUE(identity.ok());
  revoked_.insert(pem);
  EXPECT_FALSE(policy().IsStillValid(*identity));
  Presented both = WithCertificate(pem);
  both.bearer = token;
  EXPECT_THAT(MessageOf(Identify(both)), HasSubstr("revoked"));
  both.peer = kLocal;
  loopback_user_ = kOwner;
  EXPECT_FALSE(Identify(both).ok());
}

TEST_F(AccessPolicyTest, AnAuthorityThatIsTakenOutEndsOpenConnections) {
  const TestAuthority authority;
  bool is_trusted = true;
  std::string asked;
  options_.is_trusted = [&](const std::string& chain, int64_t) {
    asked = chain;
    return is_trusted;
  };
  Presented agent = WithCertificate(authority.Client("spiffe://d/rollcall/viewer").certificate_pem);
  const auto of_page = Identify(agent);
  agent.is_by_client_ca = true;
  agent.chain_pem = "CHAIN";
  const auto identity = Identify(agent);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(asked, agent.certificate_pem + "CHAIN");
  EXPECT_TRUE(policy().IsStillValid(*identity));
  is_trusted = false;
  EXPECT_FALSE(policy().IsStillValid(*identity));
  EXPECT_THAT(MessageOf(Identify(agent)), HasSubstr("no longer trusts the authority"));
  EXPECT_TRUE(policy().IsStillValid(*of_page)) << "the page may have authorities of its own";
  agent.bearer = AddToken("ci", Role::kViewer);
  EXPECT_FALSE(Identify(agent).ok()) << "as a new connection";
}

TEST_F(AccessPolicyTest, AHugeChainIsRefused) {
  Presented agent =
      WithCertificate(TestAuthority().Client("spiffe://d/rollcall/viewer").certificate_pem);
  agent.is_by_client_ca = true;
  agent.chain_pem = std::string(40'000, 'A');
  EXPECT_THAT(MessageOf(Identify(agent)), HasSubstr("longer than 32 KiB"));
}

// However many callers the daemon knows: what an open connection rests on stays with it.
TEST_F(AccessPolicyTest, AnOpenConnectionNeedsNothingThatThePolicyRemembers) {
  const TestAuthority authority;
  const std::string pem = authority.Client("spiffe://d/rollcall/viewer").certificate_pem;
  const auto identity = Identify(WithCertificate(pem));
  ASSERT_TRUE(identity.ok());
  const AccessPolicy other(options_);
  EXPECT_TRUE(other.IsStillValid(*identity));
  revoked_.insert(pem);
  EXPECT_FALSE(other.IsStillValid(*identity));
}

TEST_F(AccessPolicyTest, ACertificateEndsWithItsTime) {
  const TestAuthority authority;
  const std::string pem =
      authority.Client("spiffe://d/rollcall/viewer", {kNow - kDay, kNow + 10}).certificate_pem;
  const auto identity = Identify(WithCertificate(pem));
  ASSERT_TRUE(identity.ok());
  now_s_ = kNow + 11;
  EXPECT_FALSE(policy().IsStillValid(*identity));
  EXPECT_THAT(MessageOf(Identify(WithCertificate(pem))), HasSubstr("expired"));
}

TEST_F(AccessPolicyTest, GarbageInsteadOfACertificateIsRefused) {
  for (const std::string& pem : {std::string("x"), std::string(1 << 20, 'A'),
                                 std::string("-----BEGIN CERTIFICATE-----\n\0", 29)}) {
    EXPECT_EQ(CodeOf(Identify(WithCertificate(pem))), absl::StatusCode::kUnauthenticated);
  }
}

TEST_F(AccessPolicyTest, InsecureLetsAnybodyInWhoPresentsNothingWrong) {
  options_.is_insecure = true;
  const auto anybody = Identify(From(kStranger, "", /*is_encrypted=*/false));
  ASSERT_TRUE(anybody.ok());
  EXPECT_THAT(anybody->name, HasSubstr("--insecure"));
  EXPECT_TRUE(anybody->Has(Role::kOperator));
  const TestAuthority authority;
  const auto agent = Identify(
      WithCertificate(authority.Client("spiffe://d/rollcall/agent/host/a").certificate_pem));
  ASSERT_TRUE(agent.ok());
  EXPECT_FALSE(agent->Has(Role::kOperator)) << "a certificate still decides";
}

TEST_F(AccessPolicyTest, TheDefaultOptionsAskTheKernelAndTheClock) {
  const AccessOptions options = DefaultAccessOptions();
  EXPECT_EQ(options.owner, geteuid());
  EXPECT_GT(options.now_s(), 1'700'000'000);
  const PeerAddress nobody = *ParsePeer("ipv4:127.0.0.1:1");
  EXPECT_EQ(options.loopback_user(nobody, nobody), std::nullopt);
}

}  // namespace
}  // namespace rollcall
