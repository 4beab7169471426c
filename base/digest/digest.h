// SPDX-License-Identifier: Apache-2.0
// SHA-256, base64url, random bytes and comparison in constant time, by OpenSSL. Pure but for the
// random bytes.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// 32 bytes.
std::string Sha256(absl::string_view bytes);
// 64 hex digits in lower case.
std::string Sha256Hex(absl::string_view bytes);

// Takes a time that depends on the lengths only.
bool EqualInConstantTime(absl::string_view a, absl::string_view b);

// RFC 4648, section 5, without padding. nullopt if other characters, padding, or bits that are not
// used are set, so that one sequence of bytes has one text.
std::string ToBase64Url(absl::string_view bytes);
std::optional<std::string> FromBase64Url(absl::string_view text);

// Returns bytes for secrets; nullopt if the system gives none.
std::optional<std::string> RandomBytes(size_t count);

}  // namespace rollcall
