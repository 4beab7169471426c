// SPDX-License-Identifier: Apache-2.0
#include "base/digest/digest.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "absl/strings/escaping.h"

namespace rollcall {

std::string Sha256(absl::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string Sha256Hex(absl::string_view bytes) { return absl::BytesToHexString(Sha256(bytes)); }

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string ToBase64Url(absl::string_view bytes) { return absl::WebSafeBase64Escape(bytes); }

std::optional<std::string> FromBase64Url(absl::string_view text) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(text, &bytes)) return std::nullopt;
  // Abseil skips white space and takes padding and stray bits: only the way back shows them.
  if (ToBase64Url(bytes) != text) return std::nullopt;
  return bytes;
}

std::optional<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace rollcall
