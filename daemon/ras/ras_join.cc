// SPDX-License-Identifier: Apache-2.0
#include "daemon/ras/ras_join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/ras/ras_json.h"
#include "daemon/report/incident_proto.h"
#include "daemon/words/evidence.h"

namespace rollcall {
namespace {

constexpr char kRas[] = "NCCL's RAS";
constexpr int kMostRasLines = 16;

// Calls the function for each rank that a finding names.
template <typename Function>
void ForEachRank(std::vector<RasFinding>* findings, Function function) {
  for (RasFinding& finding : *findings) {
    for (RasCount& count : finding.counts) {
      for (RasRank& rank : count.named) function(&rank);
    }
    for (RasRank& rank : finding.lost) function(&rank);
  }
}

// The job's ranks of one host by their pids, as RAS gives them.
using HostMembers = std::map<int32_t, const RasMember*>;

std::map<std::string, HostMembers> ByHost(const std::vector<RasMember>& members) {
  std::map<std::string, HostMembers> hosts;
  for (const RasMember& member : members) {
    hosts[member.host].emplace(member.inner_pid != 0 ? member.inner_pid : member.pid, &member);
  }
  return hosts;
}

// What RAS reports of one node.
struct RasNode {
  std::set<int32_t> pids;
  std::map<int32_t, int32_t> ranks;  // of its processes in a communicator of the whole job, by pid
};

// Whether the host's ranks have the numbers that RAS gives them.
bool FitsRanks(const HostMembers& members, const std::map<int32_t, int32_t>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const auto& rank) {
    const auto member = members.find(rank.first);
    return member != members.end() && member->second->rank == rank.second;
  });
}

// nullptr if there is none, or several fit alike.
const HostMembers* HostOf(const RasNode& node, const std::map<std::string, HostMembers>& hosts) {
  std::vector<const HostMembers*> best;
  size_t most = 1;
  for (const auto& [name, members] : hosts) {
    const auto common = static_cast<size_t>(
        std::count_if(node.pids.begin(), node.pids.end(),
                      [&members](int32_t pid) { return members.count(pid) > 0; }));
    if (common < most) continue;
    if (common > most) best.clear();
    most = common;
    best.push_back(&members);
  }
  if (!node.ranks.empty()) {
    best.erase(std::remove_if(best.begin(), best.end(),
                              [&node](const HostMembers* members) {
                                return !FitsRanks(*members, node.ranks);
                              }),
               best.end());
  }
  return best.size() == 1 ? best.front() : nullptr;
}

size_t SizeOfJob(const std::vector<RasMember>& members) {
  int32_t last = -1;
  for (const RasMember& member : members) last = std::max(last, member.rank);
  return static_cast<size_t>(last + 1);
}

std::vector<RasFinding> ReadAnswer(const std::string& text) {
  return IsRasJson(text) ? ReadRasJson(text) : ReadRasOutput(text);
}

// The sum of the counts of two findings on one communicator; nullopt if not all ranks are known.
std::optional<RasFinding> Sum(const RasFinding& a, const RasFinding& b) {
  if (RanksOf(a) != RanksOf(b)) return std::nullopt;
  const std::map<int32_t, uint64_t> counts_a = CountsByRank(a), counts_b = CountsByRank(b);
  if (counts_a.empty() || counts_a.size() != counts_b.size()) return std::nullopt;
  std::map<int32_t, RasRank> named;
  for (const RasFinding* one : {&a, &b}) {
    for (const RasCount& count : one->counts) {
      for (const RasRank& rank : count.named) named.emplace(rank.rank, rank);
    }
  }
  std::map<uint64_t, RasCount> by_number;
  for (const auto& [rank, number] : counts_a) {
    const auto other = counts_b.find(rank);
    if (other == counts_b.end()) return std::nullopt;
    RasCount& count = by_number[number + other->second];
    count.operations = number + other->second;
    ++count.ranks;
    const auto place = named.find(rank);
    RasRank unnamed;
    unnamed.rank = rank;
    count.named.push_back(place == named.end() ? unnamed : place->second);
  }
  RasFinding sum = a;
  sum.operation.clear();
  sum.counts.clear();
  for (auto& [number, count] : by_number) sum.counts.push_back(std::move(count));
  return sum;
}

// What the rules conclude from the counts.
v1::Incident JudgeCounts(const std::vector<RasFinding>& findings, size_t* left_out) {
  JobModel model("ras");
  const std::vector<RasFinding> sums = SumUp(findings, left_out);
  *left_out += FillModel(sums, &model);
  Incident incident;
  for (Verdict& verdict : Diagnose(model.state(), 1, LimitsWithoutPatience())) {
    verdict.certainty = Certainty::kPossible;
    for (std::string& line : verdict.evidence) {
      absl::StrReplaceAll({{kShownByMarkersOrHost, "by the number of calls that RAS counts"}},
                          &line);
    }
    if (!IsWarning(verdict.cause)) incident.verdicts.push_back(std::move(verdict));
  }
  return ToProto(incident);
}

void AddLines(const std::vector<RasFinding>& findings, size_t left_out, v1::Verdict* verdict) {
  int lines = 0;
  for (const std::string& line : RasInWords(findings)) {
    if (lines++ < kMostRasLines) verdict->add_evidence(line);
  }
  if (lines > kMostRasLines)
    verdict->add_evidence(absl::StrCat("RAS: ", lines - kMostRasLines, " more lines"));
  if (left_out > 0) verdict->add_missing_evidence(LeftOutInWords(left_out));
}

// Both have a verdict. Ranks of a communicator and ranks of the job cannot be compared.
void JoinVerdicts(const v1::Verdict& theirs, v1::Verdict* ours) {
  if (theirs.ranks_of_communicator() != ours->ranks_of_communicator()) {
    ours->add_evidence(absl::StrCat(kRas, ": ", theirs.summary()));
    return;
  }
  if (theirs.culprit_ranks() == ours->culprit_ranks()) {
    ours->add_evidence(absl::StrCat(kRas, " blames the same: ", theirs.summary()));
    if (ours->certainty() == "possible") ours->set_certainty("likely");
    return;
  }
  ours->add_missing_evidence(
      absl::StrCat("which of two is right: ", kRas, " shows something else: ", theirs.summary()));
  ours->set_certainty("possible");
}

}  // namespace

size_t PlaceRasRanks(const std::vector<RasMember>& members,
                     const std::vector<std::vector<RasRank>>& communicators,
                     std::vector<RasFinding>* findings) {
  const std::map<std::string, HostMembers> hosts = ByHost(members);
  std::map<std::string, RasNode> nodes;
  ForEachRank(findings, [&](RasRank* rank) {
    if (rank->pid != 0) nodes[rank->node].pids.insert(rank->pid);
  });
  for (const RasFinding& finding : *findings) {
    size_t size = 0;
    for (const RasCount& count : finding.counts) size += count.ranks;
    if (size != SizeOfJob(members)) continue;
    for (const RasCount& count : finding.counts) {
      for (const RasRank& rank : count.named) nodes[rank.node].ranks[rank.pid] = rank.rank;
    }
  }
  for (const std::vector<RasRank>& communicator : communicators) {
    for (const RasRank& rank : communicator) {
      if (rank.pid == 0) continue;
      nodes[rank.node].pids.insert(rank.pid);
      if (communicator.size() == SizeOfJob(members)) nodes[rank.node].ranks[rank.pid] = rank.rank;
    }
  }
  std::map<std::string, const HostMembers*> host_of;
  std::map<const HostMembers*, int> nodes_of;
  for (const auto& [name, node] : nodes) ++nodes_of[host_of[name] = HostOf(node, hosts)];
  // A host without a look may have processes of the same numbers as another one.
  for (auto& [name, host] : host_of) host = nodes_of[host] == 1 ? host : nullptr;
  size_t found = 0;
  ForEachRank(findings, [&](RasRank* rank) {
    const HostMembers* host = rank->pid == 0 ? nullptr : host_of[rank->node];
    if (host == nullptr) return;
    const auto member = host->find(rank->pid);
    if (member == host->end()) return;
    rank->node = member->second->host;
    rank->pid = member->second->pid;
    rank->global_rank = member->second->rank;
    ++found;
  });
  return found;
}

std::vector<RasFinding> SumUp(const std::vector<RasFinding>& findings, size_t* left_out) {
  std::vector<RasFinding> out;
  RasBudget budget;
  std::map<uint64_t, std::optional<RasFinding>> sums;
  std::vector<uint64_t> order;
  for (const RasFinding& finding : findings) {
    if (finding.kind != RasFinding::Kind::kMismatch || finding.counts.empty()) continue;
    const auto [sum, is_new] = sums.emplace(finding.communicator, finding);
    if (is_new) {
      order.push_back(finding.communicator);
    } else if (sum->second) {
      sum->second = budget.Take(finding) ? Sum(*sum->second, finding) : std::nullopt;
    }
  }
  if (left_out != nullptr) *left_out = budget.left_out();
  for (const uint64_t communicator : order) {
    std::optional<RasFinding>& sum = sums[communicator];
    if (sum && sum->counts.size() > 1) out.push_back(*std::move(sum));
  }
  return out;
}

bool HaveSameCounts(const v1::RasAnswer& first, const v1::RasAnswer& second) {
  if (first.text().empty() || second.text().empty()) return false;
  return RasInWords(ReadAnswer(first.text())) == RasInWords(ReadAnswer(second.text()));
}

void JoinRas(const v1::RasAnswer& answer, const std::vector<RasMember>& members,
             v1::Incident* incident) {
  const bool has_verdict = !incident->verdicts().empty();
  if (!answer.error().empty() && has_verdict) {
    incident->mutable_verdicts(0)->add_missing_evidence(absl::StrCat(kRas, ": ", answer.error()));
  }
  if (answer.text().empty()) return;
  std::vector<RasFinding> findings = ReadAnswer(answer.text());
  const size_t placed = PlaceRasRanks(members, ReadRasMembers(answer.text()), &findings);
  if (findings.empty()) {
    const bool is_whole =
        answer.error().empty() && (IsRasJson(answer.text()) || IsRasOutput(answer.text()));
    if (!has_verdict) return;
    if (is_whole) {
      incident->mutable_verdicts(0)->add_evidence(absl::StrCat(
          kRas, ": all ranks of each communicator have launched the same number of calls"));
    } else {
      incident->mutable_verdicts(0)->add_missing_evidence(
          absl::StrCat(kRas, ": its answer cannot be read"));
    }
    return;
  }
  if (placed == 0 && !members.empty()) {
    if (has_verdict) {
      incident->mutable_verdicts(0)->add_missing_evidence(
          absl::StrCat(kRas, ": it names none of the job's processes"));
    }
    return;
  }
  size_t left_out = 0;
  const v1::Incident theirs = JudgeCounts(findings, &left_out);
  if (has_verdict && !theirs.verdicts().empty()) {
    JoinVerdicts(theirs.verdicts(0), incident->mutable_verdicts(0));
  } else if (!has_verdict) {
    *incident->mutable_verdicts() = theirs.verdicts();
  }
  if (!incident->verdicts().empty()) AddLines(findings, left_out, incident->mutable_verdicts(0));
}

}  // namespace rollcall
