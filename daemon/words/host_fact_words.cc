// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/host_fact_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostText = 120;

}  // namespace

std::string Shortened(const std::string& text) {
  if (text.size() <= kMostText) return text;
  const size_t blank = text.rfind(' ', kMostText);
  return absl::StrCat(text.substr(0, blank == std::string::npos ? kMostText : blank), "...");
}

std::string HostFactInWords(const HostFact& fact) {
  const std::string words =
      absl::StrReplaceAll(InfoOf(fact.kind).phrase,
                          {{"$s", fact.subject.empty() ? "a device" : fact.subject},
                           {"$v", absl::StrCat(fact.value)},
                           {"pid $p", fact.pid == 0 ? "a process" : absl::StrCat("pid ", fact.pid)},
                           {"$t", Shortened(fact.text)}});
  return absl::StrReplaceAll(words, {{" ()", ""}});
}

std::string WhenInWords(const HostFact& fact, int64_t since_ns) {
  if (fact.at_ns == 0 || since_ns == 0) return "";
  const int64_t before_ns = since_ns - fact.at_ns;
  if (before_ns >= 0) return DurationInWords(before_ns) + " before the wait began";
  return DurationInWords(-before_ns) + " after the wait began";
}

}  // namespace rollcall
