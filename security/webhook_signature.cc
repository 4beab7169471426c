// SPDX-License-Identifier: Apache-2.0
#include "security/webhook_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

std::string Decoded(const std::string& key) {
  absl::string_view rest = key;
  std::string bytes;
  if (absl::ConsumePrefix(&rest, "whsec_") && absl::Base64Unescape(rest, &bytes)) return bytes;
  return key;
}

}  // namespace

std::string WebhookSignature(const std::string& key, const std::string& id, int64_t time_s,
                             const std::string& body) {
  const std::string signed_text = absl::StrCat(id, ".", time_s, ".", body);
  const std::string bytes = Decoded(key);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), bytes.data(), static_cast<int>(bytes.size()),
       reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(), digest,
       &size);
  return absl::StrCat("v1,", absl::Base64Escape({reinterpret_cast<const char*>(digest), size}));
}

}  // namespace rollcall
