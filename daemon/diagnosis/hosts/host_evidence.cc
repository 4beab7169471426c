// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/host_evidence.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/hosts/host_signs.h"
#include "daemon/model/progress.h"
#include "daemon/words/evidence.h"
#include "daemon/words/host_fact_words.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostKinds = 6;   // of facts, a line for each
constexpr size_t kMostOfKind = 3;  // facts of one kind and host in a line
constexpr size_t kMostCulprits = 256;
// A part that broke earlier has not stopped this call: others have ended since.
constexpr int64_t kStallsWithinNs = 120 * kSecond;

// All ranks are in the call, or something beneath the program holds them up.
bool IsBeneath(const Verdict& v) {
  return v.cause == Cause::kStalledInFlight || v.cause == Cause::kBlockedBeforeStart ||
         (v.cause == Cause::kInitIncomplete && v.culprits.empty());
}

// Somebody is absent, has ended, or has met an error.
bool IsAboutCulprits(const Verdict& v) {
  switch (v.cause) {
    case Cause::kMissingRank:
    case Cause::kInitIncomplete:
    case Cause::kUnmatchedP2p:
    case Cause::kTeardownHang:
    case Cause::kRankDied:
    case Cause::kRankExited:
    case Cause::kNcclError:
    case Cause::kStandstill:
      return true;
    default:
      return false;
  }
}

std::set<int32_t> CulpritProcessSet(const Verdict& v) {
  std::set<int32_t> processes;
  for (const Culprit& culprit : v.culprits) processes.insert(culprit.process);
  return processes;
}

bool ConcernsAny(const HostSign& sign, const std::set<int32_t>& processes) {
  return std::any_of(sign.processes.begin(), sign.processes.end(),
                     [&](int32_t process) { return processes.count(process) != 0; });
}

std::vector<const HostSign*> RelevantSigns(const HostSigns& found, const Verdict& v) {
  std::vector<const HostSign*> relevant;
  const std::set<int32_t> culprits = CulpritProcessSet(v);
  for (const HostSign& sign : found.signs) {
    if (IsBeneath(v) || ConcernsAny(sign, culprits)) relevant.push_back(&sign);
  }
  return relevant;
}

// "rank 3", where a fact names the process of one.
std::string WhoInWords(const JobState& job, const HostSign& sign) {
  if (!sign.names_processes) return "";
  std::vector<int32_t> ranks;
  for (const int32_t process : sign.processes) {
    const int32_t rank = job.processes[static_cast<size_t>(process)].global_rank;
    if (rank >= 0) ranks.push_back(rank);
  }
  return ranks.empty() ? "" : absl::StrCat(" [", RanksInWords(ranks), "]");
}

std::string SignInWords(const JobState& job, const HostSign& sign, int64_t since_ns) {
  const std::string when = WhenInWords(*sign.fact, since_ns);
  return absl::StrCat(HostFactInWords(*sign.fact), WhoInWords(job, sign), when.empty() ? "" : " ",
                      when);
}

// "; the other 7 hosts show nothing like it".
std::string OthersInWords(const std::set<std::string>& like, size_t looked) {
  if (!like.empty()) return absl::StrCat("; the like on ", HostsInWords(like));
  if (looked <= 1) return "";
  return looked == 2 ? "; the other host shows nothing like it"
                     : absl::StrCat("; the other ", looked - 1, " hosts show nothing like it");
}

// A port that is down has lost its link: the message about it is more telling.
bool IsSaidAlready(const Verdict& v, const HostSign& sign) {
  return std::any_of(v.host_evidence.begin(), v.host_evidence.end(), [&](const auto& said) {
    return !sign.fact->subject.empty() && said.host == *sign.host &&
           said.subject == sign.fact->subject &&
           RuleOf(said.kind).advice == std::string(sign.rule->advice) &&
           said.kind != sign.fact->kind;
  });
}

// The facts of this kind on the host of `first`, and what the other hosts show.
std::string LineFor(const JobState& job, const HostSigns& found,
                    const std::vector<const HostSign*>& relevant, const HostSign& first) {
  const HostFactKind kind = first.fact->kind;
  std::set<std::string> like;
  for (const HostSign& sign : found.signs) {
    if (sign.fact->kind == kind && *sign.host != *first.host) like.insert(*sign.host);
  }
  std::string line;
  size_t count = 0;
  for (const HostSign* sign : relevant) {
    if (sign->fact->kind != kind || *sign->host != *first.host || ++count > kMostOfKind) continue;
    absl::StrAppend(&line, count == 1 ? "" : "; ", SignInWords(job, *sign, found.since_ns));
  }
  if (count > kMostOfKind) absl::StrAppend(&line, " and ", count - kMostOfKind, " more");
  return absl::StrCat(*first.host, ": ", line,
                      OthersInWords(like, found.looked[static_cast<size_t>(kind)]));
}

// A line for each kind of fact, the gravest first.
void AddLines(const JobState& job, const HostSigns& found,
              const std::vector<const HostSign*>& relevant, Verdict* v) {
  std::set<HostFactKind> kinds;
  for (const HostSign* first : relevant) {
    const HostFactKind kind = first->fact->kind;
    if (kinds.size() == kMostKinds || kinds.count(kind) != 0 || IsSaidAlready(*v, *first)) continue;
    kinds.insert(kind);
    v->evidence.push_back(LineFor(job, found, relevant, *first));
    v->host_evidence.push_back({kind, *first->host, first->fact->subject, first->fact->pid});
  }
}

bool MayStall(const HostSign& sign, int64_t since_ns) {
  return sign.rule->weight == HostSignWeight::kStalls &&
         (sign.fact->at_ns == 0 || sign.fact->at_ns >= since_ns - kStallsWithinNs);
}

// The processes whose hosts or GPUs have a broken part. Empty if there is none, or too many to be a
// difference.
std::set<int32_t> BrokenProcesses(const HostSigns& found,
                                  const std::vector<const HostSign*>& signs) {
  std::set<int32_t> processes;
  std::set<std::string> hosts;
  bool all_named = true;
  for (const HostSign* sign : signs) {
    if (!MayStall(*sign, found.since_ns)) continue;
    hosts.insert(*sign->host);
    all_named = all_named && sign->names_processes;
    processes.insert(sign->processes.begin(), sign->processes.end());
  }
  const bool is_difference = found.hosts > 1 ? 2 * hosts.size() <= found.hosts : all_named;
  if (!is_difference || processes.size() > kMostCulprits) processes.clear();
  return processes;
}

// The culprits among those that wait. Ranks that others have finished the call before stay culprits
// only if their host is broken, too.
void AddCulprits(const JobState& job, const std::set<int32_t>& broken, Verdict* v) {
  const auto comm = job.communicators.find(v->communicator);
  if (broken.empty() || comm == job.communicators.end()) return;
  std::vector<Culprit> culprits;
  for (const Culprit& culprit : v->culprits) {
    if (broken.count(culprit.process) != 0) culprits.push_back(culprit);
  }
  if (v->culprits.empty()) {
    for (const auto& [rank, member] : comm->second.members) {
      if (broken.count(member.process) == 0) continue;
      culprits.push_back(MakeCulprit(job, member.process, rank, &member));
    }
  }
  const bool is_all = culprits.size() >= static_cast<size_t>(comm->second.size);
  if (culprits.empty() || is_all) return;
  v->culprits = std::move(culprits);
  v->certainty = std::min(v->certainty, Certainty::kLikely);
}

// What no agent could look at.
void AddMissing(const JobState& job, Verdict* v) {
  std::map<std::string, std::set<std::string>> hosts;  // by reason
  for (const auto& [host, facts] : job.host_facts) {
    if (facts.gathered_ns < v->since_ns) continue;
    if (!facts.error.empty()) hosts[absl::StrCat("no facts: ", facts.error)].insert(host);
    for (const HostProbe& probe : facts.probes) {
      if (probe.outcome != "denied" && probe.outcome != "failed") continue;
      hosts[absl::StrCat("no look at ", probe.name, ": ", probe.note)].insert(host);
    }
  }
  for (const auto& [reason, those] : hosts) {
    v->missing_evidence.push_back(absl::StrCat(HostsInWords(those), ": ", reason));
  }
}

}  // namespace

void AddHostEvidence(const JobState& job, Verdict* verdict) {
  if (job.host_facts.empty() || verdict->is_consequence) return;
  if (!IsBeneath(*verdict) && !IsAboutCulprits(*verdict)) return;
  const HostSigns found = FindHostSigns(job, verdict->since_ns);
  const std::vector<const HostSign*> relevant = RelevantSigns(found, *verdict);
  AddLines(job, found, relevant, verdict);
  if (verdict->cause != Cause::kStalledInFlight) return;
  AddCulprits(job, BrokenProcesses(found, relevant), verdict);
  AddMissing(job, verdict);
}

}  // namespace rollcall
