// SPDX-License-Identifier: Apache-2.0
// Hides secrets in texts that leave the host: command lines, error messages.
//
// The patterns find what looks like a secret (secret_patterns.h), and what the user names. They
// cannot find a secret without a shape or a name, such as a password as a bare argument. They look
// at the text as a terminal shows it (shown_text.h), and the result is of that.
//
// Takes time linear in the length of a text. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rollcall {

inline constexpr char kRedacted[] = "[redacted]";
inline constexpr char kNoDefaultPatterns[] = "none";
// Redact() leaves out what follows, and the word in which the limit lies, which may be a part of a
// secret: it reads no further, and the cost is bounded.
inline constexpr size_t kMaxRedactedText = 65'536;  // bytes

class Redactor {
 public:
  // `patterns`: expressions of RE2 beside the default ones; a pattern "none" switches the default
  // ones off. The first group is hidden, or the whole match of a pattern without a group. An error
  // if a pattern is malformed or matches the empty text.
  static absl::StatusOr<std::shared_ptr<const Redactor>> Create(
      const std::vector<std::string>& patterns);
  ~Redactor();

  // The text, with kRedacted in the place of each secret. Clean it after this, and cut it after
  // this: no pattern matches a part of a secret.
  std::string Redact(absl::string_view text) const;

 private:
  struct Patterns;
  explicit Redactor(std::unique_ptr<Patterns> patterns);

  const std::unique_ptr<Patterns> patterns_;
};

// Checks a value of the flag --redact. Returns the error of Create() for this pattern, or "" if it
// takes it.
std::string CheckRedactPattern(const std::string& pattern);

// Returns a redactor with the default patterns only.
std::shared_ptr<const Redactor> DefaultRedactor();

}  // namespace rollcall
