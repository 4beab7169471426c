// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/members/heard_hosts.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// Adds the other ranks of the lost hosts, whatever their position.
void AddRanksOfHosts(const JobState& job, const std::set<std::string>& hosts, Verdict* verdict) {
  std::set<int32_t> named;
  for (const Culprit& culprit : verdict->culprits) named.insert(culprit.process);
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    const auto index = static_cast<int32_t>(i);
    if (!IsSilent(process) || !process.has_segment || hosts.count(process.host) == 0) continue;
    if (named.count(index) != 0) continue;
    verdict->culprits.push_back(MakeCulprit(job, index, process.global_rank, nullptr));
  }
  std::stable_sort(verdict->culprits.begin(), verdict->culprits.end(),
                   [](const Culprit& a, const Culprit& b) { return a.rank < b.rank; });
}

}  // namespace

// Silence is not proof: the network or the agent may be down while the ranks live. If other ranks
// wait for exactly the ranks of a silent host, the host is likely lost.
std::optional<Verdict> JudgeLostHosts(const Suspicion& s) {
  std::vector<Absent> lost =
      Pick(s, [](const Absent& a) { return a.silent && a.gone == Gone::kNo; });
  if (lost.empty()) return std::nullopt;
  // If fresh reports show an absent rank, that rank explains the wait.
  const bool known = std::any_of(s.absents.begin(), s.absents.end(), [](const Absent& a) {
    return !a.silent && a.lack != Lack::kUnheard;
  });
  if (known) return std::nullopt;
  const HeardHosts heard(s.job);
  lost.erase(
      std::remove_if(lost.begin(), lost.end(),
                     [&](const Absent& a) { return heard.FindAgentOn(a.process) != nullptr; }),
      lost.end());
  std::set<std::string> hosts;
  for (Absent& absent : lost) {
    absent.at_most = Certainty::kLikely;
    hosts.insert(FindProcess(s.job, absent.process)->host);
  }
  std::optional<Verdict> verdict = Blame(s, Cause::kHostLost, lost);
  if (!verdict) return verdict;
  AddRanksOfHosts(s.job, hosts, &*verdict);
  verdict->evidence.push_back(absl::StrCat("no more reports from ", HostsInWords(hosts)));
  return verdict;
}

}  // namespace rollcall
