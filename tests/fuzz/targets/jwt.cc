// SPDX-License-Identifier: Apache-2.0
// Tokens of Kubernetes. The first byte of an input says who signs: no key (the rest is the token),
// or the key of this target (a line with the header, and the claims).
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>

#include "base/digest/digest.h"
#include "fuzz_target.h"
#include "security/jwt/json_web_token.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kLeewayS = 60;

class Signer {
 public:
  Signer() : key_(EVP_EC_gen("P-256")) {
    const std::string jwks = R"({"keys":[{"kid":"k","kty":"EC","crv":"P-256","x":")" +
                             Coordinate(OSSL_PKEY_PARAM_EC_PUB_X) + R"(","y":")" +
                             Coordinate(OSSL_PKEY_PARAM_EC_PUB_Y) + "\"}]}";
    auto keys = KeySet::Parse(jwks);
    Promise(keys.ok(), "the key of this target can be read");
    keys_ = *std::move(keys);
  }

  const KeySet& keys() const { return keys_; }

  // In the form of JWTs.
  std::string Sign(const std::string& message) const {
    unsigned char asn1[80];
    size_t size = sizeof(asn1);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key_);
    EVP_DigestSign(context, asn1, &size, reinterpret_cast<const unsigned char*>(message.data()),
                   message.size());
    EVP_MD_CTX_free(context);
    const unsigned char* at = asn1;
    ECDSA_SIG* parts = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size));
    const std::string both = Number(ECDSA_SIG_get0_r(parts)) + Number(ECDSA_SIG_get0_s(parts));
    ECDSA_SIG_free(parts);
    return both;
  }

 private:
  static std::string Number(const BIGNUM* number) {
    std::string bytes(32, '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), 32);
    return bytes;
  }
  std::string Coordinate(const char* parameter) const {
    BIGNUM* number = nullptr;
    EVP_PKEY_get_bn_param(key_, parameter, &number);
    const std::string text = ToBase64Url(Number(number));
    BN_free(number);
    return text;
  }

  EVP_PKEY* const key_;
  KeySet keys_;
};

void Run(Input input) {
  static const auto& signer = *new Signer();
  const bool is_signed = input.Take<uint8_t>() % 2 == 1;
  std::string token;
  if (is_signed) {
    const std::string header(input.TakeLine()), claims(input.TakeRest());
    token = ToBase64Url(header) + "." + ToBase64Url(claims);
    token += "." + ToBase64Url(signer.Sign(token));
  } else {
    token = std::string(input.TakeRest());
  }
  const auto claims = VerifyJwt(token, signer.keys(), {"rollcall", ""}, kNow);
  Promise(is_signed || !claims.ok(), "nobody but the key's owner signs");
  if (!claims.ok()) return;
  Promise(!claims->subject.empty(), "a token has a subject");
  Promise(claims->expires_s + kLeewayS > kNow, "no token has expired");
  (void)IdentifyJwt(*claims, {});
}

const Registered kTarget({"jwt", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
