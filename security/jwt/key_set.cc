// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/key_set.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/param_build.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest/digest.h"
#include "base/json/strict_json.h"
#include "security/certificates/openssl_types.h"

namespace rollcall {
namespace {

using nlohmann::json;
using KeyContext = OpenSslPointer<EVP_PKEY_CTX, &EVP_PKEY_CTX_free>;
using DigestContext = OpenSslPointer<EVP_MD_CTX, &EVP_MD_CTX_free>;
using ParameterBuilder = OpenSslPointer<OSSL_PARAM_BLD, &OSSL_PARAM_BLD_free>;
using Parameters = OpenSslPointer<OSSL_PARAM, &OSSL_PARAM_free>;
using EcdsaSignature = OpenSslPointer<ECDSA_SIG, &ECDSA_SIG_free>;

constexpr size_t kMostKeys = 1000;
constexpr int kShortestRsa = 2048, kLongestRsa = 8192;
constexpr int kLongestExponent = 64;     // bits: a longer one only costs time
constexpr size_t kCoordinateBytes = 32;  // of P-256

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

BigNumber ToNumber(absl::string_view bytes) {
  return BigNumber(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

// Returns a public key of that type from what `builder` holds, or nullptr if that is not a key.
std::shared_ptr<EVP_PKEY> BuildKey(const char* type, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext maker(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* made = nullptr;
  if (parameters == nullptr || maker == nullptr || EVP_PKEY_fromdata_init(maker.get()) != 1 ||
      EVP_PKEY_fromdata(maker.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  std::shared_ptr<EVP_PKEY> key(made, &EVP_PKEY_free);
  const KeyContext checker(EVP_PKEY_CTX_new_from_pkey(nullptr, made, nullptr));
  const bool is_sound = checker != nullptr && EVP_PKEY_public_check(checker.get()) == 1;
  ERR_clear_error();
  return is_sound ? key : nullptr;
}

// Null: malformed. `*is_weak`: sound, but not to be used.
std::shared_ptr<EVP_PKEY> RsaKey(const json& key, bool* is_weak) {
  const auto modulus = FromBase64Url(TextMember(key, "n"));
  const auto exponent = FromBase64Url(TextMember(key, "e"));
  if (!modulus.has_value() || !exponent.has_value()) return nullptr;
  const BigNumber n = ToNumber(*modulus), e = ToNumber(*exponent);
  if (n == nullptr || e == nullptr) return nullptr;
  const int bits = BN_num_bits(n.get());
  *is_weak = bits < kShortestRsa || bits > kLongestRsa;
  const bool is_sound_exponent =
      BN_is_odd(e.get()) && !BN_is_one(e.get()) && BN_num_bits(e.get()) <= kLongestExponent;
  if (*is_weak || !is_sound_exponent) return nullptr;
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  return BuildKey("RSA", builder.get());
}

std::shared_ptr<EVP_PKEY> EcKey(const json& key) {
  const auto x = FromBase64Url(TextMember(key, "x"));
  const auto y = FromBase64Url(TextMember(key, "y"));
  if (!x.has_value() || !y.has_value() || x->size() != kCoordinateBytes ||
      y->size() != kCoordinateBytes) {
    return nullptr;
  }
  const std::string point = absl::StrCat("\x04", *x, *y);  // not compressed
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return BuildKey("EC", builder.get());
}

// The use that a key declares.
bool IsForUs(const json& key, absl::string_view algorithm) {
  const std::string use = TextMember(key, "use"), own = TextMember(key, "alg");
  return (use.empty() || use == "sig") && (own.empty() || own == algorithm);
}

// A JWT has the two numbers of an ECDSA signature side by side; OpenSSL wants ASN.1.
std::optional<std::string> ToAsn1(absl::string_view signature) {
  if (signature.size() != 2 * kCoordinateBytes) return std::nullopt;
  BigNumber r = ToNumber(signature.substr(0, kCoordinateBytes));
  BigNumber s = ToNumber(signature.substr(kCoordinateBytes));
  const EcdsaSignature both(ECDSA_SIG_new());
  if (r == nullptr || s == nullptr || both == nullptr) return std::nullopt;
  ECDSA_SIG_set0(both.get(), r.release(), s.release());
  unsigned char* bytes = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &bytes);
  if (size <= 0) return std::nullopt;
  std::string asn1(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return asn1;
}

}  // namespace

absl::string_view SignatureName(SignatureKind kind) {
  return kind == SignatureKind::kRs256 ? "RS256" : "ES256";
}

absl::StatusOr<KeySet> KeySet::Parse(absl::string_view jwks) {
  const absl::StatusOr<json> document = ParseStrictObject(jwks);
  if (!document.ok()) return document.status();
  const auto list = document->find("keys");
  if (list == document->end() || !list->is_array() || list->size() > kMostKeys) {
    return absl::InvalidArgumentError("it has no list 'keys', or one of more than 1000 keys");
  }
  KeySet set;
  for (const json& item : *list) {
    if (!item.is_object()) return absl::InvalidArgumentError("a key is not a JSON object");
    const std::string id = TextMember(item, "kid"), type = TextMember(item, "kty");
    Key key;
    bool is_weak = false;
    if (id.empty()) continue;
    if (type == "RSA" && IsForUs(item, "RS256")) {
      key = {SignatureKind::kRs256, RsaKey(item, &is_weak)};
    } else if (type == "EC" && TextMember(item, "crv") == "P-256" && IsForUs(item, "ES256")) {
      key = {SignatureKind::kEs256, EcKey(item)};
    } else {
      continue;
    }
    if (is_weak) continue;
    if (key.key == nullptr) return absl::InvalidArgumentError("a key is malformed");
    if (!set.keys_.emplace(id, std::move(key)).second) {
      return absl::InvalidArgumentError("two keys have one 'kid'");
    }
  }
  if (set.keys_.empty()) {
    return absl::InvalidArgumentError(
        "it has no key of use: RSA of 2048 to 8192 bits or EC of P-256, with a 'kid'");
  }
  return set;
}

const SignatureKind* KeySet::Find(const std::string& id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second.kind;
}

bool KeySet::Verifies(const std::string& id, absl::string_view message,
                      absl::string_view signature) const {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return false;
  std::string form(signature);
  if (found->second.kind == SignatureKind::kEs256) {
    std::optional<std::string> asn1 = ToAsn1(signature);
    if (!asn1.has_value()) return false;
    form = *std::move(asn1);
  }
  const DigestContext context(EVP_MD_CTX_new());
  const bool verifies = context != nullptr &&
                        EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr,
                                             found->second.key.get()) == 1 &&
                        EVP_DigestVerify(context.get(), Bytes(form), form.size(), Bytes(message),
                                         message.size()) == 1;
  ERR_clear_error();
  return verifies;
}

}  // namespace rollcall
