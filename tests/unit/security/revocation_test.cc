// SPDX-License-Identifier: Apache-2.0
#include "security/revocation.h"

#include <gtest/gtest.h>

#include "security/certificate.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

std::string ListOf(const TestAuthority& authority, const std::vector<std::string>& pems,
                   int64_t made_s = kNow) {
  std::vector<RevokedSerial> revoked;
  for (const std::string& pem : pems) revoked.push_back({ParseCertificate(pem)->serial, kNow});
  return MakeRevocationList(authority.own(), revoked, 1, {made_s, kNow + kDay}).value();
}

class RevocationTest : public testing::Test {
 protected:
  const TestAuthority authority_;
  const std::string good_ = authority_.Server().certificate_pem;
  const std::string bad_ = authority_.Server().certificate_pem;
};

TEST_F(RevocationTest, NothingIsRevokedWithoutAList) {
  EXPECT_FALSE(RevocationList().IsRevoked(good_));
  EXPECT_EQ(RevocationList().expires_s(), 0);
}

TEST_F(RevocationTest, TellsTheRevokedFromTheOthers) {
  const auto list = RevocationList::Parse(ListOf(authority_, {bad_}), authority_.pem());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->IsRevoked(bad_));
  EXPECT_FALSE(list->IsRevoked(good_));
  EXPECT_EQ(list->expires_s(), kNow + kDay);
}

TEST_F(RevocationTest, WhatIsNoCertificateCountsAsRevoked) {
  const auto list = RevocationList::Parse(ListOf(authority_, {}), authority_.pem());
  EXPECT_TRUE(list->IsRevoked("garbage"));
  EXPECT_FALSE(list->IsRevoked(good_));
}

TEST_F(RevocationTest, RefusesTheListOfAStranger) {
  const TestAuthority stranger;  // of the same name
  EXPECT_FALSE(RevocationList::Parse(ListOf(stranger, {bad_}), authority_.pem()).ok());
  EXPECT_FALSE(RevocationList::Parse("garbage", authority_.pem()).ok());
  EXPECT_FALSE(RevocationList::Parse("", authority_.pem()).ok());
}

TEST_F(RevocationTest, KnowsAnOlderListOfTheSameAuthority) {
  const auto list = [&](const TestAuthority& authority, int64_t made_s) {
    return RevocationList::Parse(ListOf(authority, {bad_}, made_s), authority.pem()).value();
  };
  const TestAuthority other({kNow, kNow + kDay}, "Another");
  const RevocationList today = list(authority_, kNow), before = list(authority_, kNow - kDay);
  EXPECT_TRUE(before.IsOlderThan(today));
  EXPECT_FALSE(today.IsOlderThan(before));
  EXPECT_FALSE(today.IsOlderThan(today));
  EXPECT_FALSE(list(other, kNow - kDay).IsOlderThan(today)) << "lists of two authorities";
  EXPECT_FALSE(before.IsOlderThan(RevocationList()));
}

TEST_F(RevocationTest, AListSpeaksForItsOwnAuthorityOnly) {
  const TestAuthority other({kNow, kNow + kDay}, "Another");
  const std::string both = authority_.pem() + other.pem();
  const auto list = RevocationList::Parse(ListOf(other, {bad_}), both);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_FALSE(list->IsRevoked(bad_));
  const auto two = RevocationList::Parse(ListOf(other, {}) + ListOf(authority_, {bad_}), both);
  EXPECT_TRUE(two->IsRevoked(bad_));
}

}  // namespace
}  // namespace rollcall
