// SPDX-License-Identifier: Apache-2.0
#include "security/secret_names.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace rollcall {
namespace {

// Words that are a secret's name at the end of a name.
constexpr const char* kSecrets[] = {
    "auth", "authorization", "bearer", "cookie", "cookies", "creds",  "dsn",  "jwt",  "key",
    "keys", "login",         "otp",    "pass",   "pat",     "pin",    "psk",  "pw",   "pwd",
    "sas",  "session",       "sig",    "token",  "userpwd", "bindpw", "hmac", "salt", "signature"};
// The same holds for these as a part of any word.
constexpr const char* kParts[] = {"password", "passwd",    "passphrase", "secret",
                                  "apikey",   "accesskey", "authtoken",  "credential"};
// Words that show that it is something about a secret.
constexpr const char* kAbout[] = {"file",   "path", "dir",    "folder", "name", "len",
                                  "length", "size", "dim",    "mask",   "type", "env",
                                  "id",     "ids",  "format", "port",   "count"};
// With these in front, a token is one of a language model.
constexpr const char* kTokens[] = {"pad", "eos",   "bos",     "unk", "mask",  "sep",  "cls",
                                   "end", "start", "special", "per", "image", "stop", "begin"};

template <size_t N>
bool IsOneOf(const std::string& word, const char* const (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// "access", "key" of "access_key", "accessKey" and "ACCESS-KEY2", in lower case.
std::vector<std::string> WordsOf(absl::string_view name) {
  std::vector<std::string> words(1);
  bool was_lower = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool begins = was_lower && absl::ascii_isupper(byte);
    if ((begins || !absl::ascii_isalpha(byte)) && !words.back().empty()) words.emplace_back();
    if (absl::ascii_isalpha(byte)) words.back() += absl::ascii_tolower(byte);
    was_lower = absl::ascii_islower(byte);
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool HasSecretPart(const std::string& word) {
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](const char* part) { return absl::StrContains(word, part); });
}

}  // namespace

bool SuggestsSecret(absl::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  if (words.empty() || IsOneOf(words.back(), kAbout)) return false;
  if (std::any_of(words.begin(), words.end(), HasSecretPart)) return true;
  const bool is_word_of_a_model = words.size() > 1 && IsOneOf(words[words.size() - 2], kTokens);
  return IsOneOf(words.back(), kSecrets) && !(words.back() == "token" && is_word_of_a_model);
}

}  // namespace rollcall
