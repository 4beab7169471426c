// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/key_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_keys.h"

namespace rollcall {
namespace {

using ::testing::HasSubstr;

TEST(KeySetTest, KeysOfBothKindsVerifyTheirSignatures) {
  const TestKey rsa = TestKey::Rsa("r"), ec = TestKey::Ec("e");
  const auto keys = KeySet::Parse(
      KeySetText({rsa.Json(R"(,"use":"sig","alg":"RS256","x5c":["ignored"])"), ec.Json()}));
  ASSERT_TRUE(keys.ok()) << keys.status();
  for (const TestKey* key : {&rsa, &ec}) {
    std::string signature = key->Sign("message");
    EXPECT_TRUE(keys->Verifies(key->id(), "message", signature));
    EXPECT_FALSE(keys->Verifies(key->id(), "massage", signature));
    EXPECT_FALSE(keys->Verifies("other", "message", signature));
    EXPECT_FALSE(keys->Verifies(key->id(), "message", signature + "x"));
    EXPECT_FALSE(keys->Verifies(key->id(), "message", ""));
    signature[10] = static_cast<char>(signature[10] ^ 1);
    EXPECT_FALSE(keys->Verifies(key->id(), "message", signature));
  }
  EXPECT_EQ(*keys->Find("r"), SignatureKind::kRs256);
  EXPECT_EQ(*keys->Find("e"), SignatureKind::kEs256);
  EXPECT_EQ(keys->Find("x"), nullptr);
}

TEST(KeySetTest, OtherDigestsAndPaddingsOfTheSameKeyDoNotVerify) {
  const TestKey rsa = TestKey::Rsa("r");
  const auto keys = KeySet::Parse(KeySetText({rsa.Json()}));
  ASSERT_TRUE(keys.ok());
  EXPECT_FALSE(keys->Verifies("r", "m", rsa.Sign("m", EVP_sha512())));
  EXPECT_FALSE(keys->Verifies("r", "m", rsa.Sign("m", EVP_sha1())));
  EXPECT_FALSE(keys->Verifies("r", "m", rsa.Sign("m", EVP_sha256(), /*is_pss=*/true)));
}

TEST(KeySetTest, AnEcSignatureOfZerosDoesNotVerify) {
  const auto keys = KeySet::Parse(KeySetText({TestKey::Ec("e").Json()}));
  ASSERT_TRUE(keys.ok());
  EXPECT_FALSE(keys->Verifies("e", "m", std::string(64, '\0')));
  EXPECT_FALSE(keys->Verifies("e", "m", std::string(64, '\xff')));
}

TEST(KeySetTest, KeysOfOtherUsesAreLeftOut) {
  const TestKey good = TestKey::Ec("good");
  const auto keys = KeySet::Parse(KeySetText({
      good.Json(),
      TestKey::Ec("enc").Json(R"(,"use":"enc")"),
      TestKey::Rsa("ps").Json(R"(,"alg":"PS256")"),
      TestKey::Rsa("short", 1024).Json(),
      R"({"kid":"h","kty":"oct","k":"AAAA"})",
      R"({"kid":"p","kty":"EC","crv":"P-384","x":"AA","y":"AA"})",
      R"({"kty":"RSA","n":"AA","e":"AQAB"})",
  }));
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->size(), 1u);
  EXPECT_NE(keys->Find("good"), nullptr);
}

TEST(KeySetTest, MalformedSetsAreRefused) {
  const TestKey rsa = TestKey::Rsa("r"), ec = TestKey::Ec("e");
  const std::string n = rsa.Number(OSSL_PKEY_PARAM_RSA_N);
  const auto rsa_with = [](const std::string& modulus, const std::string& exponent) {
    return R"({"kid":"r","kty":"RSA","n":")" + modulus + R"(","e":")" + exponent + "\"}";
  };
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string(R"({"keys":{}})"),
        std::string(R"({"keys":[]})"), std::string(R"({"keys":["a"]})"),
        std::string(R"({"keys":[],"keys":[]})"),
        KeySetText({rsa.Json(), rsa.Json()}),                // an id twice
        KeySetText({ec.Json(), rsa_with(n + "=", "AQAB")}),  // bad base64
        KeySetText({ec.Json(), rsa_with(n, "AQ")}),          // exponent 1
        KeySetText({ec.Json(), rsa_with(n, "Ag")}),          // exponent 2
        KeySetText({ec.Json(), rsa_with(n, "")}),            // exponent 0
        KeySetText({ec.Json(), rsa_with(n, n)}),             // a slow exponent
        KeySetText({rsa_with(ToBase64Url(std::string(10'000, '\x7f')), "AQAB")}),
        KeySetText({R"({"kid":"e","kty":"EC","crv":"P-256","x":"AA","y":"AA"})"}),
        KeySetText({R"({"kid":"e","kty":"EC","crv":"P-256","x":")" +
                    ToBase64Url(std::string(32, '\x01')) + R"(","y":")" +
                    ToBase64Url(std::string(32, '\x02')) + "\"}"})}) {  // not on the curve
    EXPECT_FALSE(KeySet::Parse(bad).ok()) << bad.substr(0, 200);
  }
  EXPECT_THAT(
      std::string(KeySet::Parse(KeySetText({TestKey::Rsa("s", 1024).Json()})).status().message()),
      HasSubstr("2048"));
}

}  // namespace
}  // namespace rollcall
