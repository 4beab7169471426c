// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/unanswered.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "daemon/looks/looked_at.h"

namespace rollcall {
namespace {

constexpr size_t kHostsOfLine = 4;

std::string UnansweredLine(const std::vector<std::string>& hosts, const std::string& why) {
  if (hosts.size() == 1) return absl::StrCat("host ", hosts[0], ": ", why);
  const std::vector<std::string> named(hosts.begin(),
                                       hosts.begin() + std::min(hosts.size(), kHostsOfLine));
  const size_t more = hosts.size() - named.size();
  return absl::StrCat("hosts ", absl::StrJoin(named, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"), ": ", why);
}

}  // namespace

std::string WhyUnseen(const v1::ProcessLook& process, bool has_answered) {
  const auto& samples = process.samples();
  for (const v1::StackSample& sample : samples) {
    const bool says_why = !sample.stack().error().empty();
    if (!HasFrames(sample.stack()) && says_why) return sample.stack().error();
  }
  if (!has_answered) return "it did not answer when it was read in /proc";
  if (samples.empty()) return "no time was left to take its stacks";
  return samples.size() == 1 ? "no time was left for a second look" : "";
}

std::vector<std::string> UnansweredHosts(const std::vector<v1::HostLook>& looks) {
  // ssh repeats the name of the host in its errors: by "*" there, equal reasons are equal.
  std::map<std::string, std::vector<std::string>> reasons;
  std::map<std::string, std::string> first;
  for (const v1::HostLook& look : looks) {
    if (look.error().empty()) continue;
    const std::string reason =
        absl::StrReplaceAll(look.error(), {{absl::StrCat(" ", look.host(), " "), " * "}});
    reasons[reason].push_back(look.host());
    first.emplace(reason, look.error());
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> ordered(reasons.begin(),
                                                                        reasons.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::vector<std::string> lines;
  for (const auto& [reason, hosts] : ordered) {
    if (lines.size() + 1 == kMostUnansweredLines && ordered.size() > kMostUnansweredLines) {
      lines.push_back(absl::StrCat("hosts did not answer for ", ordered.size() - lines.size(),
                                   " other reasons"));
      break;
    }
    lines.push_back(UnansweredLine(hosts, hosts.size() == 1 ? first[reason] : reason));
  }
  return lines;
}

std::vector<std::string> UnseenOnHosts(const std::vector<v1::HostLook>& looks) {
  std::vector<std::string> lines;
  for (const v1::HostLook& look : looks) {
    const std::string host = looks.size() > 1 ? absl::StrCat(look.host(), ": ") : "";
    for (const std::string& line : look.unseen()) lines.push_back(host + line);
    if (look.left_out() > 0) {
      lines.push_back(absl::StrCat(host, look.left_out(), " more processes of jobs were left out"));
    }
  }
  return lines;
}

}  // namespace rollcall
