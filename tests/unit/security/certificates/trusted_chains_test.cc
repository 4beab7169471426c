// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/trusted_chains.h"

#include <gtest/gtest.h>

#include "test_chain.h"

namespace rollcall {
namespace {

constexpr Validity kLong{kNow - kDay, kNow + kDay};

class TrustedChainsTest : public testing::Test {
 protected:
  const KeyAndCertificate root_ = MakeTestAuthority("Root", nullptr, kLong);
  const KeyAndCertificate below_ = MakeTestAuthority("Below", &root_, kLong);
  const KeyAndCertificate other_ = MakeTestAuthority("Other", nullptr, kLong);
  const std::string leaf_ =
      IssueCertificate(below_, {"agent", {"spiffe://d/rollcall/agent"}, {}, {}, false}, kLong)
          ->certificate_pem;
  const std::string chain_ = leaf_ + below_.certificate_pem;
  TrustedChains chains_;
};

TEST_F(TrustedChainsTest, FollowsTheAuthorities) {
  EXPECT_TRUE(chains_.IsTrusted(chain_, root_.certificate_pem, kNow));
  EXPECT_TRUE(chains_.IsTrusted(chain_, other_.certificate_pem + root_.certificate_pem, kNow));
  EXPECT_FALSE(chains_.IsTrusted(chain_, other_.certificate_pem, kNow));
  EXPECT_TRUE(chains_.IsTrusted(chain_, root_.certificate_pem, kNow)) << "it is back";
}

// gRPC's handshake takes an authority in the middle as the end of a chain, or does not; who has
// come in by it stays.
TEST_F(TrustedChainsTest, AnAuthorityInTheMiddleIsEnough) {
  EXPECT_FALSE(chains_.IsTrusted(leaf_, root_.certificate_pem, kNow)) << "a link is missing";
  EXPECT_TRUE(chains_.IsTrusted(leaf_, root_.certificate_pem + below_.certificate_pem, kNow));
  EXPECT_TRUE(chains_.IsTrusted(leaf_, below_.certificate_pem, kNow));
}

TEST_F(TrustedChainsTest, AnAuthorityEndsWithItsTime) {
  EXPECT_TRUE(chains_.IsTrusted(chain_, root_.certificate_pem, kNow));
  EXPECT_FALSE(chains_.IsTrusted(chain_, root_.certificate_pem, kNow + 2 * kDay));
}

TEST_F(TrustedChainsTest, GarbageIsNotTrusted) {
  EXPECT_FALSE(chains_.IsTrusted("", root_.certificate_pem, kNow));
  EXPECT_FALSE(chains_.IsTrusted("garbage", root_.certificate_pem, kNow));
  EXPECT_FALSE(chains_.IsTrusted(chain_, "", kNow));
}

}  // namespace
}  // namespace rollcall
