// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "absl/strings/str_cat.h"
#include "security/certificates/pem.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const TestAuthority& Authority() {
  static const TestAuthority authority;
  return authority;
}

std::string Error(const absl::Status& status) { return std::string(status.message()); }

absl::Status CheckServer(const KeyAndCertificate& pair, std::string_view ca = "",
                         int64_t now_s = kNow) {
  return CheckPair(pair.certificate_pem, pair.key_pem, ca, CertificateUse::kServer, now_s);
}

std::string WithPassphrase(const std::string& key_pem) {
  const KeyPointer key = ReadKey(key_pem).value();
  const BioPointer text(BIO_new(BIO_s_mem()));
  char secret[] = "secret";
  PEM_write_bio_PKCS8PrivateKey(text.get(), key.get(), EVP_aes_128_cbc(), secret, 6, nullptr,
                                nullptr);
  return TextOf(text.get());
}

TEST(CertificateTest, TellsNamesTimesAndFingerprint) {
  const KeyAndCertificate pair =
      Authority().Issue({"node-17",
                         {"spiffe://rollcall/rollcall/agent/host/node-17"},
                         {"node-17", "node-17.cluster.example"},
                         {"10.0.0.17", "fd00::17"},
                         false},
                        {kNow, kNow + kDay});
  const CertificateFacts facts = ParseCertificate(pair.certificate_pem).value();
  EXPECT_THAT(facts.uris, ElementsAre("spiffe://rollcall/rollcall/agent/host/node-17"));
  EXPECT_THAT(facts.dns_names, ElementsAre("node-17", "node-17.cluster.example"));
  EXPECT_THAT(facts.ip_addresses, ElementsAre("10.0.0.17", "fd00::17"));
  EXPECT_EQ(facts.not_before_s, kNow);
  EXPECT_EQ(facts.not_after_s, kNow + kDay);
  EXPECT_EQ(facts.subject, "CN=node-17");
  EXPECT_EQ(facts.fingerprint.size(), 64u);
  EXPECT_GE(facts.serial.size(), 28u);
  EXPECT_FALSE(facts.is_authority);
  EXPECT_TRUE(ParseCertificate(Authority().pem())->is_authority);
}

TEST(CertificateTest, TheFactsAreThoseOfTheFirstOfAChain) {
  const std::string chain = Authority().Server().certificate_pem + Authority().pem();
  EXPECT_EQ(ParseCertificate(chain)->subject, "CN=daemon");
  ASSERT_EQ(ParseCertificates(chain)->size(), 2u);
  EXPECT_EQ(ParseCertificates(chain)->at(1).subject, "CN=Rollcall test");
}

TEST(CertificateTest, EachCertificateHasItsOwnSerialAndFingerprint) {
  const CertificateFacts one = ParseCertificate(Authority().Server().certificate_pem).value();
  const CertificateFacts two = ParseCertificate(Authority().Server().certificate_pem).value();
  EXPECT_NE(one.serial, two.serial);
  EXPECT_NE(one.fingerprint, two.fingerprint);
}

TEST(CertificateTest, ANameWithAControlCharacterIsNotAName) {
  const KeyAndCertificate pair =
      Authority().Issue({"x", {}, {"good", "bad\nname", "also bad"}, {}, false});
  EXPECT_THAT(ParseCertificate(pair.certificate_pem)->dns_names, ElementsAre("good"));
}

TEST(CertificateTest, RefusesTextsThatAreNotACertificate) {
  EXPECT_THAT(Error(ParseCertificate("").status()), HasSubstr("no certificate"));
  EXPECT_THAT(Error(ParseCertificate("hello").status()), HasSubstr("openssl x509 -inform der"));
  EXPECT_THAT(Error(ParseCertificate(Authority().Server().key_pem).status()),
              HasSubstr("a private key instead of a certificate"));
  std::string damaged = Authority().pem();
  damaged[damaged.size() / 2] = '!';
  EXPECT_THAT(Error(ParseCertificate(damaged).status()), HasSubstr("certificate number 1"));
}

TEST(CertificateTest, EveryHalfOfAFileIsRefusedAndNoneCrashes) {
  const KeyAndCertificate pair = Authority().Server();
  for (size_t size = 0; size + 2 < pair.certificate_pem.size(); size += 7) {
    EXPECT_FALSE(ParseCertificate(pair.certificate_pem.substr(0, size)).ok()) << size;
  }
  for (size_t size = 0; size + 2 < pair.key_pem.size(); size += 3) {
    const KeyAndCertificate half = {pair.certificate_pem, pair.key_pem.substr(0, size)};
    EXPECT_FALSE(CheckServer(half).ok()) << size;
  }
}

TEST(CheckPairTest, AcceptsAPairWithAndWithoutItsAuthority) {
  const KeyAndCertificate pair = Authority().Server();
  EXPECT_EQ(CheckServer(pair), absl::OkStatus());
  EXPECT_EQ(CheckServer(pair, Authority().pem()), absl::OkStatus());
  EXPECT_EQ(CheckPair(pair.certificate_pem, pair.key_pem, Authority().pem(),
                      CertificateUse::kClient, kNow),
            absl::OkStatus());
}

TEST(CheckPairTest, RefusesTheKeyOfAnotherCertificate) {
  const KeyAndCertificate mixed = {Authority().Server().certificate_pem,
                                   Authority().Server().key_pem};
  EXPECT_THAT(Error(CheckServer(mixed)), HasSubstr("the key does not belong to the certificate"));
}

TEST(CheckPairTest, RefusesAKeyWithAPassphraseAndDoesNotAsk) {
  KeyAndCertificate pair = Authority().Server();
  pair.key_pem = WithPassphrase(pair.key_pem);
  EXPECT_THAT(Error(CheckServer(pair)), HasSubstr("the key has a passphrase"));
}

TEST(CheckPairTest, SaysThatTheFilesAreExchanged) {
  const KeyAndCertificate pair = Authority().Server();
  EXPECT_THAT(Error(CheckServer({pair.certificate_pem, pair.certificate_pem})),
              HasSubstr("a certificate instead of a private key"));
}

TEST(CheckPairTest, RefusesACertificateOutsideItsTime) {
  const KeyAndCertificate pair = Authority().Server({kNow, kNow + kDay});
  EXPECT_EQ(CheckServer(pair, "", kNow + kDay), absl::OkStatus());
  EXPECT_EQ(Error(CheckServer(pair, "", kNow + kDay + 1)),
            "the certificate expired on 2027-01-16 08:00:00 UTC; renew it");
  EXPECT_THAT(Error(CheckServer(pair, "", kNow - 1)),
              HasSubstr("valid only from 2027-01-15 08:00:00 UTC"));
}

TEST(CheckPairTest, RefusesAnotherAuthority) {
  EXPECT_THAT(Error(CheckServer(Authority().Server(), TestAuthority().pem())),
              HasSubstr("the authority did not sign the certificate"));
}

TEST(CheckPairTest, TheCertificateOfAClientCannotServe) {
  const KeyAndCertificate pair = Authority().Client("spiffe://rollcall/rollcall/viewer");
  EXPECT_THAT(Error(CheckServer(pair)), HasSubstr("serverAuth"));
  EXPECT_EQ(CheckPair(pair.certificate_pem, pair.key_pem, "", CertificateUse::kClient, kNow),
            absl::OkStatus());
}

TEST(CheckAuthoritiesTest, NeedsOneAuthorityThatIsValid) {
  const TestAuthority old({kNow - 2 * kDay, kNow - kDay});
  EXPECT_EQ(CheckAuthorities(old.pem() + Authority().pem(), kNow), absl::OkStatus());
  EXPECT_THAT(Error(CheckAuthorities(old.pem(), kNow)), HasSubstr("expired on"));
  EXPECT_THAT(Error(CheckAuthorities(Authority().Server().certificate_pem, kNow)),
              HasSubstr("belongs to an authority"));
  EXPECT_THAT(Error(CheckAuthorities("", kNow)), HasSubstr("no certificate"));
}

}  // namespace
}  // namespace rollcall
