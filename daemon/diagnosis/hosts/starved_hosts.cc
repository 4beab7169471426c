// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/starved_hosts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/freshness.h"

namespace rollcall {
namespace {

// Of ten seconds, in percent. A job that computes keeps its host busy, and tasks wait now and then.
constexpr int64_t kStarved = 75;

void AddHost(const JobState& job, int32_t process, std::set<std::string>* hosts) {
  const Process* known = FindProcess(job, process);
  if (known != nullptr) hosts->insert(known->host);
}

// The hosts of the ranks that wait and of those that they wait for.
std::set<std::string> HostsOf(const JobState& job, const Verdict& verdict) {
  std::set<std::string> hosts;
  for (const Culprit& culprit : verdict.culprits) AddHost(job, culprit.process, &hosts);
  for (const int32_t process : verdict.waiting_processes) AddHost(job, process, &hosts);
  return hosts;
}

int64_t CpuPressure(const HostFacts& facts) {
  int64_t most = 0;
  for (const HostFact& fact : facts.facts) {
    if (fact.kind == HostFactKind::kCpuPressure) most = std::max(most, fact.value);
  }
  return most;
}

}  // namespace

void WeighStarvedHosts(const JobState& job, Verdict* verdict) {
  if (job.host_facts.empty() || !RestsOnWait(*verdict) || IsContradiction(verdict->cause)) return;
  for (const std::string& host : HostsOf(job, *verdict)) {
    const auto facts = job.host_facts.find(host);
    if (facts == job.host_facts.end() || facts->second.gathered_ns < verdict->since_ns) continue;
    const int64_t percent = CpuPressure(facts->second);
    if (percent < kStarved) continue;
    verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
    verdict->missing_evidence.push_back(absl::StrCat("whether the ranks of ", host,
                                                     " are only slow: its tasks wait for a CPU ",
                                                     percent, " % of the time"));
  }
}

}  // namespace rollcall
