// SPDX-License-Identifier: Apache-2.0
#include "security/redact.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "security/secret_patterns.h"
#include "security/shown_text.h"

namespace rollcall {
namespace {

RE2::Options Options() {
  RE2::Options options(RE2::Quiet);
  options.set_encoding(RE2::Options::EncodingLatin1);  // bytes: texts need not be valid UTF-8
  options.set_max_mem(16 << 20);
  return options;
}

// How many bytes of `text` kRedacted replaces, where a pattern hides the first `matched`. What is
// hidden already stays so. An empty match makes progress.
size_t LengthToHide(absl::string_view text, size_t matched) {
  const absl::string_view kHidden(kRedacted, sizeof(kRedacted) - 1);
  if (matched >= kHidden.size() - 1 && absl::StartsWith(text, kHidden)) return kHidden.size();
  return std::min(std::max<size_t>(matched, 1), text.size());
}

std::string HideMatches(const RE2& pattern, absl::string_view text) {
  const re2::StringPiece whole(text.data(), text.size());
  const int groups = std::min(pattern.NumberOfCapturingGroups(), 1) + 1;
  re2::StringPiece found[2];
  std::string out;
  size_t at = 0;
  while (at < text.size() &&
         pattern.Match(whole, at, text.size(), RE2::UNANCHORED, found, groups)) {
    const bool has_group = groups == 2 && found[1].data() != nullptr;
    const re2::StringPiece& hidden = has_group ? found[1] : found[0];
    const auto begin = static_cast<size_t>(hidden.data() - text.data());
    absl::StrAppend(&out, text.substr(at, begin - at));
    at = begin + LengthToHide(text.substr(begin), hidden.size());
    absl::StrAppend(&out, hidden.empty() ? text.substr(begin, at - begin) : kRedacted);
  }
  if (at < text.size()) absl::StrAppend(&out, text.substr(at));
  return out;
}

constexpr size_t kLongestCutWord = 4096;  // bytes: no part of a shorter secret stays

// Takes away the last word, which may be a part of a secret.
void DropLastWord(std::string* text) {
  const size_t least = text->size() - std::min(text->size(), kLongestCutWord);
  const size_t blank = text->find_last_of(" \t\r\n");
  text->resize(blank == std::string::npos ? least : std::max(blank, least));
}

absl::Status WrongPattern(const std::string& pattern, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--redact=", pattern, ": ", why,
                   "; give an expression of RE2, for instance --redact='ticket-([0-9]+)'"));
}

}  // namespace

struct Redactor::Patterns {
  std::vector<std::unique_ptr<RE2>> all;
  // All at once: most texts match none.
  RE2::Set any{Options(), RE2::UNANCHORED};

  // Returns why the expression is not a pattern, or "" if it is one.
  std::string Add(const std::string& expression) {
    auto pattern = std::make_unique<RE2>(expression, Options());
    if (!pattern->ok()) return pattern->error();
    if (RE2::FullMatch("", *pattern)) return "it matches the empty text";
    std::string error;
    if (any.Add(expression, &error) < 0) return error;
    all.push_back(std::move(pattern));
    return "";
  }

  // The patterns that a text has, in their order.
  std::vector<int> MatchingIn(const std::string& text) const {
    std::vector<int> matching;
    RE2::Set::ErrorInfo error;
    if (!any.Match(text, &matching, &error) && error.kind != RE2::Set::kNoError) {
      // Out of memory for the automaton: each pattern alone.
      matching.resize(all.size());
      std::iota(matching.begin(), matching.end(), 0);
    }
    std::sort(matching.begin(), matching.end());
    return matching;
  }
};

Redactor::Redactor(std::unique_ptr<Patterns> patterns) : patterns_(std::move(patterns)) {}
Redactor::~Redactor() = default;

absl::StatusOr<std::shared_ptr<const Redactor>> Redactor::Create(
    const std::vector<std::string>& patterns) {
  auto made = std::make_unique<Patterns>();
  if (std::find(patterns.begin(), patterns.end(), kNoDefaultPatterns) == patterns.end()) {
    for (const SecretPattern& secret : kSecretPatterns) {
      const std::string wrong = made->Add(secret.expression);
      if (!wrong.empty()) return absl::InternalError(absl::StrCat(secret.name, ": ", wrong));
    }
  }
  for (const std::string& pattern : patterns) {
    if (pattern == kNoDefaultPatterns) continue;
    const std::string wrong = made->Add(pattern);
    if (!wrong.empty()) return WrongPattern(pattern, wrong);
  }
  if (!made->all.empty() && !made->any.Compile()) {
    return absl::InvalidArgumentError(
        "--redact: the patterns together are too large; give fewer or shorter ones");
  }
  return std::shared_ptr<const Redactor>(new Redactor(std::move(made)));
}

std::string Redactor::Redact(absl::string_view text) const {
  const absl::string_view begin = text.substr(0, kMaxRedactedText);
  if (patterns_->all.empty()) return std::string(begin);
  std::string out = ShownText(begin);
  for (const int i : patterns_->MatchingIn(out)) {
    out = HideMatches(*patterns_->all[static_cast<size_t>(i)], out);
  }
  if (begin.size() < text.size()) DropLastWord(&out);
  return out;
}

std::string CheckRedactPattern(const std::string& pattern) {
  const auto made = Redactor::Create({kNoDefaultPatterns, pattern});
  return made.ok() ? "" : std::string(made.status().message());
}

std::shared_ptr<const Redactor> DefaultRedactor() {
  static const std::shared_ptr<const Redactor> redactor = *Redactor::Create({});
  return redactor;
}

}  // namespace rollcall
