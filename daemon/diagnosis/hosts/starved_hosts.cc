// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/starved_hosts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/model/progress.h"
#include "daemon/rules/freshness.h"

namespace rollcall {
namespace {

// A share of ten seconds, in percent. A job that computes keeps its host busy, and tasks wait now
// and then.
constexpr int64_t kStarved = 75;
// What takes a second on a host with a free CPU takes some seconds there.
constexpr int64_t kTimesLonger = 3;

int64_t CpuPressure(const HostFacts& facts) {
  int64_t most = 0;
  for (const HostFact& fact : facts.facts) {
    if (fact.kind == HostFactKind::kCpuPressure) most = std::max(most, fact.value);
  }
  return most;
}

// Shares in percent, by host. Nearly always empty: then the ranks are not searched.
using StarvedHosts = std::map<absl::string_view, int64_t>;

StarvedHosts FindStarvedHosts(const JobState& job, const Verdict& verdict) {
  StarvedHosts starved;
  for (const auto& [host, facts] : job.host_facts) {
    if (facts.gathered_ns < verdict.since_ns) continue;
    const int64_t percent = CpuPressure(facts);
    if (percent >= kStarved) starved.emplace(host, percent);
  }
  return starved;
}

// Returns the hosts of the ranks that wait and of the ranks that they wait for.
std::set<absl::string_view> ConcernedHosts(const JobState& job, const Verdict& verdict,
                                           const StarvedHosts& starved) {
  std::set<absl::string_view> hosts;
  const auto add = [&](int32_t process) {
    const Process* known = FindProcess(job, process);
    if (known == nullptr) return;
    const auto host = starved.find(known->host);
    if (host != starved.end()) hosts.insert(host->first);
  };
  for (const Culprit& culprit : verdict.culprits) add(culprit.process);
  for (const int32_t process : verdict.waiting_processes) add(process);
  return hosts;
}

// The process uses the CPU that it gets, and no two samples show that it stands; or it waits for a
// child that uses some.
bool UsesItsCpu(const Process& process) {
  const bool moves = process.motion == Motion::kUnknown || process.motion == Motion::kMoving;
  return (process.cpu_moving && moves) || process.has_slow_children;
}

bool MayWork(const JobState& job, const Verdict& verdict, const StarvedHosts& starved) {
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(), [&](const Culprit& culprit) {
    const Process* known = FindProcess(job, culprit.process);
    return known != nullptr && culprit.ending.empty() && known->liveness == Liveness::kAlive &&
           starved.count(known->host) != 0 && UsesItsCpu(*known);
  });
}

}  // namespace

void WeighStarvedHosts(const JobState& job, const Limits& limits, Verdict* verdict) {
  if (job.host_facts.empty() || !RestsOnWait(*verdict) || IsContradiction(verdict->cause)) return;
  const StarvedHosts starved = FindStarvedHosts(job, *verdict);
  if (starved.empty()) return;
  if (MayWork(job, *verdict, starved)) {
    verdict->counts_from_ns = std::max(
        verdict->counts_from_ns, verdict->since_ns + (kTimesLonger - 1) * limits.hang_after_ns);
  }
  for (const absl::string_view host : ConcernedHosts(job, *verdict, starved)) {
    verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
    verdict->missing_evidence.push_back(absl::StrCat("whether the ranks of ", host,
                                                     " are only slow: its tasks wait for a CPU ",
                                                     starved.at(host), " % of the time"));
  }
}

}  // namespace rollcall
