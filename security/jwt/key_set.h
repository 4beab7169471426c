// SPDX-License-Identifier: Apache-2.0
// The public keys that verify JWTs, from a JSON Web Key Set (RFC 7517). A value: thread-safe, cheap
// to copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_pkey_st;  // EVP_PKEY of OpenSSL

namespace rollcall {

// How a key signs. Each key has one way: the header of a JWT cannot choose another.
enum class SignatureKind : uint8_t {
  kRs256,  // RSA of 2048 to 8192 bits, PKCS #1 v1.5, SHA-256
  kEs256,  // ECDSA on P-256, SHA-256
};

// "RS256", "ES256".
absl::string_view SignatureName(SignatureKind kind);

class KeySet {
 public:
  // Keys without an id ("kid"), of other kinds, of other uses and RSA keys below 2048 bits are left
  // out. An error if no key is left, an id is there twice, or a key is malformed.
  static absl::StatusOr<KeySet> Parse(absl::string_view jwks);

  // Returns how the key of that id signs, or nullptr if the set has no such key.
  const SignatureKind* Find(const std::string& id) const;

  // Whether the key of that id made `signature`, in the form of JWTs, of `message`.
  bool Verifies(const std::string& id, absl::string_view message,
                absl::string_view signature) const;

  size_t size() const { return keys_.size(); }

 private:
  struct Key {
    SignatureKind kind = SignatureKind::kRs256;
    std::shared_ptr<evp_pkey_st> key;
  };

  std::map<std::string, Key> keys_;  // by id
};

}  // namespace rollcall
