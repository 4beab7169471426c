// SPDX-License-Identifier: Apache-2.0
// The text of a token file: who holds a token, and what it may do. The file has only the SHA-256 of
// each token. That is enough: a token has 256 random bits, so it cannot be guessed from its digest,
// and a slow digest such as bcrypt would only slow the daemon. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "security/identity.h"

namespace rollcall {

struct TokenEntry {
  std::string name;  // of the holder, unique in a file
  Role role = Role::kViewer;
  std::vector<std::string> tenants;
  std::vector<std::string> hosts;  // of an agent
  int64_t expires_s = 0;           // Unix time; 0 if never
  std::string sha256;              // 64 hex digits in lower case, unique in a file
  size_t line = 0;                 // of the first key in the file, from 0
};

// An error begins with "line N:". It is an error if the text has a key twice or an unknown key, two
// entries of one name or digest, an agent without hosts, an anchor or an alias.
absl::StatusOr<std::vector<TokenEntry>> ParseTokens(absl::string_view text);

// A new secret: "rollcall_" and 43 characters of base64url.
absl::StatusOr<std::string> NewToken();
// Whether the text has that form. Tokens of any other form are refused: they may be short.
bool IsTokenForm(absl::string_view text);

// The entry of this token, also if the token has expired, or nullptr. Looks at all entries in
// constant time.
const TokenEntry* FindToken(const std::vector<TokenEntry>& entries, absl::string_view token);

// True from the second on that the entry names.
bool HasExpired(const TokenEntry& entry, int64_t now_s);

Identity TokenIdentity(const TokenEntry& entry);

// "2027-11-23T00:00:00Z", or "never" for 0.
std::string ExpiryText(int64_t expires_s);

}  // namespace rollcall
