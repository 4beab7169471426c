// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/remote_hosts.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "base/cut_text.h"

namespace rollcall {
namespace {

constexpr size_t kLongestName = 255;
constexpr size_t kShownOfName = 60;

bool HasOnly(absl::string_view text, absl::string_view others) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [others](unsigned char c) {
           return absl::ascii_isalnum(c) || others.find(static_cast<char>(c)) != others.npos;
         });
}

// "node-1:8" of MPICH is a host and its slots; more than one colon is an address of IPv6.
absl::string_view WithoutSlots(absl::string_view word) {
  const size_t colon = word.find(':');
  if (colon == absl::string_view::npos || word.find(':', colon + 1) != word.npos) return word;
  const absl::string_view slots = word.substr(colon + 1);
  const bool is_number =
      !slots.empty() && std::all_of(slots.begin(), slots.end(), absl::ascii_isdigit);
  return is_number ? word.substr(0, colon) : word;
}

}  // namespace

bool IsHostName(absl::string_view text) { return HasOnly(text, "._-@:%[]") && text[0] != '-'; }

bool IsKubernetesName(absl::string_view text) {
  return HasOnly(text, ".-") && absl::ascii_isalnum(static_cast<unsigned char>(text[0]));
}

bool IsSlurmJob(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(
             text.begin(), text.end(),
             [](unsigned char c) { return absl::ascii_isdigit(c) || c == '_' || c == '+'; }) &&
         absl::ascii_isdigit(static_cast<unsigned char>(text[0]));
}

absl::StatusOr<std::vector<std::string>> ParseHosts(absl::string_view text) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\n,"))) {
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    const absl::string_view host = WithoutSlots(words[0]);
    if (!IsHostName(host)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", CutText(CleanText(std::string(words[0])), kShownOfName, "..."),
                       "\" is not the name of a host"));
    }
    if (!seen.insert(std::string(host)).second) continue;
    if (hosts.size() == kMostRemoteHosts)
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMostRemoteHosts, " hosts"));
    hosts.emplace_back(host);
  }
  if (hosts.empty()) return absl::InvalidArgumentError("it names no host");
  return hosts;
}

}  // namespace rollcall
