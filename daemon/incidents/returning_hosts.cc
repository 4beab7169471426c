// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/returning_hosts.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// The start of a process is known to some hundredths of a second. A longer step makes a verdict
// less certain at most.
constexpr int64_t kClockStep = kSecond;
constexpr size_t kMaxNamedHosts = 5;

// "node-7 has not reported since the daemon was restarted"; names a few hosts and their number.
std::string MissingHostsInWords(const std::set<std::string>& hosts) {
  const size_t named = std::min(hosts.size(), kMaxNamedHosts);
  const std::vector<std::string> names(hosts.begin(), std::next(hosts.begin(), long(named)));
  if (hosts.size() == 1) {
    return absl::StrCat(names[0], " has not reported since the daemon was restarted");
  }
  return absl::StrCat(hosts.size(), " hosts have not reported since the daemon was restarted",
                      named < hosts.size() ? ", among them " : ": ", absl::StrJoin(names, ", "));
}

// Words it for a job whose hosts are unknown.
std::string UnreportedRanksInWords(const RankCount& ranks) {
  return absl::StrCat("the daemon was started after the job, and of ", ranks.all, " ranks ",
                      ranks.unreported, ranks.unreported == 1 ? " has" : " have",
                      " not been reported since");
}

}  // namespace

void ReturningHosts::Begin(int64_t now_ns, bool has_history) {
  started_ns_ = now_ns;
  has_history_ = has_history;
  is_known_ = !has_history;
}

bool ReturningHosts::Awaits(const JobIncidents& job, int64_t now_ns) const {
  const int64_t since_ns = std::max(started_ns_, job.restored_ns);
  return (!is_known_ || !job.hosts.missing().empty()) && now_ns - since_ns < kReturnWithinNs;
}

// Without a history it is unknown which hosts a job had that began before this daemon.
std::string ReturningHosts::WhatIsNotSeen(const JobState& state, const JobIncidents& job,
                                          int64_t began_ns) const {
  if (!job.hosts.missing().empty()) return MissingHostsInWords(job.hosts.missing());
  const bool has_records = is_known_ && has_history_;
  if (has_records || began_ns >= started_ns_ - kClockStep) return "";
  const RankCount ranks = CountRanks(state);
  return ranks.unreported == 0 ? "" : UnreportedRanksInWords(ranks);
}

void Weaken(const std::string& line, std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    verdict.certainty = std::min(verdict.certainty, Certainty::kLikely);
    verdict.missing_evidence.push_back(line);
  }
}

void Weaken(const std::string& line, v1::Incident* incident) {
  for (v1::Verdict& verdict : *incident->mutable_verdicts()) {
    if (verdict.certainty() == CertaintyName(Certainty::kCertain)) {
      verdict.set_certainty(CertaintyName(Certainty::kLikely));
    }
    const auto& lines = verdict.missing_evidence();
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
      verdict.add_missing_evidence(line);
    }
  }
}

}  // namespace rollcall
