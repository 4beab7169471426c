// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/revocation.h"

#include <gtest/gtest.h>

#include "security/certificates/certificate.h"
#include "test_chain.h"

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

TEST_F(RevocationTest, WhatIsNotACertificateCountsAsRevoked) {
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

// Some authorities append a new list to the file, and others sign one list for each part of their
// certificates.
TEST_F(RevocationTest, TwoListsOfOneAuthorityCountTogether) {
  const std::string first = ListOf(authority_, {bad_}, kNow - kDay);
  const std::string second = ListOf(authority_, {}, kNow);
  for (const std::string& text : {first + second, second + first}) {
    const auto both = RevocationList::Parse(text, authority_.pem());
    ASSERT_TRUE(both.ok()) << both.status();
    EXPECT_TRUE(both->IsRevoked(bad_));
    EXPECT_FALSE(both->IsRevoked(good_));
    EXPECT_FALSE(both->IsOlderThan(*both)) << "the file is read again, and has not changed";
    EXPECT_TRUE(RevocationList::Parse(first, authority_.pem())->IsOlderThan(*both));
    EXPECT_FALSE(RevocationList::Parse(second, authority_.pem())->IsOlderThan(*both));
  }
}

TEST_F(RevocationTest, AFileWithoutTheListOfAnAuthorityForgetsIt) {
  const TestAuthority other({kNow, kNow + kDay}, "Another");
  const std::string ca = authority_.pem() + other.pem();
  const auto two = RevocationList::Parse(ListOf(other, {}) + ListOf(authority_, {bad_}), ca);
  const auto one = RevocationList::Parse(ListOf(other, {}), ca);
  ASSERT_TRUE(two.ok() && one.ok());
  EXPECT_TRUE(one->Forgets(*two));
  EXPECT_FALSE(two->Forgets(*one));
  EXPECT_FALSE(RevocationList::Parse(ListOf(other, {}), other.pem())->Forgets(*two))
      << "nobody believes the other authority any more";
  EXPECT_EQ(one->AuthoritiesWithoutList(), std::vector<std::string>{"CN=Rollcall test"});
  EXPECT_TRUE(two->AuthoritiesWithoutList().empty());
}

class ChainRevocationTest : public testing::Test {
 protected:
  std::string Leaf(const KeyAndCertificate& by) const {
    return IssueCertificate(by, {"agent", {"spiffe://d/rollcall/agent"}, {}, {}, false}, long_)
        ->certificate_pem;
  }
  std::string ListBy(const KeyAndCertificate& by, const std::string& revoked) const {
    return *MakeRevocationList(by, {{ParseCertificate(revoked)->serial, kNow}}, 1, long_);
  }

  const Validity long_{kNow - kDay, kNow + kDay};
  const KeyAndCertificate root_ = MakeTestAuthority("Root", nullptr, long_);
  const KeyAndCertificate below_ = MakeTestAuthority("Below", &root_, long_, 17);
  const KeyAndCertificate beside_ = MakeTestAuthority("Beside", &root_, long_, 18);
  const std::string bad_ = Leaf(below_), good_ = Leaf(below_), of_beside_ = Leaf(beside_);
};

TEST_F(ChainRevocationTest, AnAuthorityInTheMiddleRevokesItsOwn) {
  const std::string ca = root_.certificate_pem + below_.certificate_pem;
  const auto list = RevocationList::Parse(ListBy(below_, bad_), ca);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->IsRevoked(bad_ + below_.certificate_pem));
  EXPECT_FALSE(list->IsRevoked(good_ + below_.certificate_pem));
}

TEST_F(ChainRevocationTest, TheListOfAnAuthorityInTheMiddleNeedsItsCertificate) {
  const auto list = RevocationList::Parse(ListBy(below_, bad_), root_.certificate_pem);
  ASSERT_FALSE(list.ok());
  EXPECT_NE(list.status().message().find("CN=Below: add the certificate of that authority"),
            absl::string_view::npos)
      << list.status();
}

TEST_F(ChainRevocationTest, FindsARevokedCertificateAmongMany) {
  const auto list =
      RevocationList::Parse(ListBy(root_, below_.certificate_pem), root_.certificate_pem);
  std::string chain = of_beside_ + beside_.certificate_pem;
  for (int i = 0; i < 8; ++i) chain += beside_.certificate_pem;
  EXPECT_FALSE(list->IsRevoked(chain));
  EXPECT_TRUE(list->IsRevoked(chain + beside_.certificate_pem));
}

// However the process learns of the authority in the middle.
TEST_F(ChainRevocationTest, ARevokedAuthorityTakesItsCertificatesWithIt) {
  const std::string list_text = ListBy(root_, below_.certificate_pem);
  const auto list = RevocationList::Parse(list_text, root_.certificate_pem);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->IsRevoked(good_ + below_.certificate_pem));
  EXPECT_FALSE(list->IsRevoked(of_beside_ + beside_.certificate_pem));
  EXPECT_FALSE(list->IsRevoked(of_beside_ + beside_.certificate_pem + below_.certificate_pem))
      << "what is not above it does not count";
  const auto with = RevocationList::Parse(
      list_text, root_.certificate_pem + below_.certificate_pem + beside_.certificate_pem);
  EXPECT_TRUE(with->IsRevoked(good_));
  EXPECT_FALSE(with->IsRevoked(of_beside_));
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
