// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/tls_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_authority.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TlsSettings With(const TestPair& pair) {
  TlsSettings settings;
  settings.certificate_pem = pair.certificate_pem;
  settings.key_pem = pair.key_pem;
  return settings;
}

std::string ErrorOf(const TlsSettings& settings) {
  return std::string(TlsContext::Make(settings).status().message());
}

TEST(TlsContextTest, KnowsTheNamesOfItsCertificate) {
  const OpensslAuthority authority;
  const auto made = TlsContext::Make(With(
      authority.Issue("DNS:rollcall.example,IP:10.0.0.1,URI:spiffe://x/y,DNS:*.nodes.example")));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT((*made)->names(), ElementsAre("rollcall.example", "*.nodes.example"));
  EXPECT_NEAR(static_cast<double>((*made)->expires_s()), static_cast<double>(time(nullptr) + 3600),
              30);
}

TEST(TlsContextTest, RefusesWhatDoesNotFitOrParse) {
  const OpensslAuthority authority;
  const TestPair pair = authority.Issue("DNS:a"), other = authority.Issue("DNS:a");
  EXPECT_THAT(ErrorOf(With({pair.certificate_pem, other.key_pem})), HasSubstr("do not belong"));
  EXPECT_THAT(ErrorOf(With({"garbage", pair.key_pem})), HasSubstr("no certificate"));
  EXPECT_THAT(ErrorOf(With({pair.certificate_pem, "garbage"})), HasSubstr("no private key"));
  EXPECT_THAT(ErrorOf(With({pair.certificate_pem.substr(0, 200), pair.key_pem})),
              HasSubstr("certificate number 1 is damaged"));
  EXPECT_THAT(ErrorOf(With({pair.certificate_pem, pair.key_pem.substr(0, 60)})),
              HasSubstr("the key is damaged"));
  TlsSettings clients = With(pair);
  clients.client_ca_pem = "garbage";
  EXPECT_THAT(ErrorOf(clients), HasSubstr("the client CA: no certificate"));
  clients = With(pair);
  clients.requires_client_certificate = true;
  EXPECT_THAT(ErrorOf(clients), HasSubstr("no client CA"));
}

// Without a terminal, too: OpenSSL must not prompt.
TEST(TlsContextTest, RefusesAKeyWithAPassword) {
  const OpensslAuthority authority;
  const TestPair pair = authority.Issue("DNS:a");
  BIO* bio = BIO_new_mem_buf(pair.key_pem.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO* locked = BIO_new(BIO_s_mem());
  char password[] = "password";
  PEM_write_bio_PrivateKey(locked, key, EVP_aes_128_cbc(), nullptr, 0, nullptr, password);
  char* text = nullptr;
  const long size = BIO_get_mem_data(locked, &text);
  EXPECT_THAT(ErrorOf(With({pair.certificate_pem, std::string(text, size_t(size))})),
              HasSubstr("the key has a passphrase"));
  BIO_free(locked);
  BIO_free(bio);
  EVP_PKEY_free(key);
}

}  // namespace
}  // namespace rollcall
