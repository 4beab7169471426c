// SPDX-License-Identifier: Apache-2.0
// Keys of OpenSSL that sign JWTs in tests, and their JSON Web Keys.
#pragma once

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>

#include "base/digest/digest.h"

namespace rollcall {

class TestKey {
 public:
  static TestKey Rsa(const std::string& id, size_t bits = 2048) {
    return TestKey(id, EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", bits));
  }
  static TestKey Ec(const std::string& id, const char* curve = "P-256") {
    return TestKey(id, EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve));
  }

  bool is_rsa() const { return EVP_PKEY_is_a(key_.get(), "RSA") == 1; }
  std::string algorithm() const { return is_rsa() ? "RS256" : "ES256"; }
  const std::string& id() const { return id_; }

  // `more`: further members, such as `,"use":"enc"`.
  std::string Json(const std::string& more = "") const {
    const std::string head = R"({"kid":")" + id_ + '"' + more;
    if (is_rsa()) {
      return head + R"(,"kty":"RSA","n":")" + Number(OSSL_PKEY_PARAM_RSA_N) + R"(","e":")" +
             Number(OSSL_PKEY_PARAM_RSA_E) + "\"}";
    }
    return head + R"(,"kty":"EC","crv":"P-256","x":")" + Number(OSSL_PKEY_PARAM_EC_PUB_X, 32) +
           R"(","y":")" + Number(OSSL_PKEY_PARAM_EC_PUB_Y, 32) + "\"}";
  }

  // In the form of JWTs, by RS256 or ES256.
  std::string Sign(const std::string& message, const EVP_MD* digest = EVP_sha256(),
                   bool is_pss = false) const {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_PKEY_CTX* details = nullptr;
    EXPECT_EQ(EVP_DigestSignInit(context, &details, digest, nullptr, key_.get()), 1);
    if (is_pss) EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING);
    size_t size = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
    EXPECT_EQ(EVP_DigestSign(context, nullptr, &size, bytes, message.size()), 1);
    std::string signature(size, '\0');
    EXPECT_EQ(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size,
                             bytes, message.size()),
              1);
    signature.resize(size);
    EVP_MD_CTX_free(context);
    return is_rsa() ? signature : SideBySide(signature);
  }

  std::string PublicPem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(bio, key_.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string pem(data, static_cast<size_t>(size));
    BIO_free(bio);
    return pem;
  }

  std::string Number(const char* parameter, int width = 0) const {
    BIGNUM* number = nullptr;
    EXPECT_EQ(EVP_PKEY_get_bn_param(key_.get(), parameter, &number), 1);
    if (width == 0) width = BN_num_bytes(number);
    std::string bytes(static_cast<size_t>(width), '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), width);
    BN_free(number);
    return ToBase64Url(bytes);
  }

 private:
  TestKey(std::string id, EVP_PKEY* key) : id_(std::move(id)), key_(key, &EVP_PKEY_free) {
    EXPECT_NE(key, nullptr);
  }

  static std::string SideBySide(const std::string& asn1) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(asn1.data());
    ECDSA_SIG* both = d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(asn1.size()));
    std::string result(64, '\0');
    auto* out = reinterpret_cast<unsigned char*>(result.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(both), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(both), out + 32, 32);
    ECDSA_SIG_free(both);
    return result;
  }

  std::string id_;
  std::shared_ptr<EVP_PKEY> key_;
};

inline std::string KeySetText(const std::vector<std::string>& keys) {
  std::string list;
  for (const std::string& key : keys) list += (list.empty() ? "" : ",") + key;
  return R"({"keys":[)" + list + "]}";
}

inline std::string HmacSha256(const std::string& key, const std::string& message) {
  unsigned char digest[32];
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest, &size);
  return {reinterpret_cast<char*>(digest), size};
}

}  // namespace rollcall
