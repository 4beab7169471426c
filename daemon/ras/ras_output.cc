// SPDX-License-Identifier: Apache-2.0
#include "daemon/ras/ras_output.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/words/terms.h"
#include "interpose/ops.h"

namespace rollcall {
namespace {

constexpr size_t kMostFindings = 1024;
constexpr size_t kMostRasRanks = 1 << 16;  // of a finding
constexpr size_t kNamed = 8;               // in a line of words

using Words = std::vector<std::string>;

Words SplitWords(absl::string_view line) { return absl::StrSplit(line, ' ', absl::SkipEmpty()); }

int32_t NumberAfter(const Words& words, const std::string& before) {
  const auto at = std::find(words.begin(), words.end(), before);
  int32_t number = -1;
  if (at == words.end() || at + 1 == words.end() || !absl::SimpleAtoi(*(at + 1), &number))
    return -1;
  return number;
}

// "Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124",
// "Rank 12 -- [process information not found]", or
// "Process 323032 on node 10.137.190.124 managing GPU 4".
std::optional<RasRank> ReadRank(const Words& words) {
  const bool is_rank = !words.empty() && words[0] == "Rank";
  if (!is_rank && (words.empty() || words[0] != "Process")) return std::nullopt;
  RasRank rank;
  if (is_rank) rank.rank = NumberAfter(words, "Rank");
  rank.pid = std::max(NumberAfter(words, is_rank ? "process" : "Process"), 0);
  rank.device = NumberAfter(words, "GPU");
  const auto node = std::find(words.begin(), words.end(), "node");
  if (node != words.end() && node + 1 != words.end()) rank.node = *(node + 1);
  if (is_rank ? rank.rank < 0 : rank.pid == 0) return std::nullopt;
  return rank;
}

// "launched up to operation 640", "not launched any operations".
std::optional<uint64_t> ReadOperations(const Words& words, size_t first) {
  const auto word = [&](size_t i) { return first + i < words.size() ? words[first + i] : ""; };
  if (word(0) == "not" && word(1) == "launched") return 0;
  uint64_t operations = 0;
  const bool fits = word(0) == "launched" && word(3) == "operation" &&
                    absl::SimpleAtoi(absl::StripSuffix(word(4), ":"), &operations);
  return fits ? std::optional<uint64_t>(operations) : std::nullopt;
}

// "30 ranks have launched up to operation 640", or of one rank alone
// "Rank 12 has launched up to operation 639 -- GPU 4 managed by process 323032 on node node-17".
std::optional<RasCount> ReadCount(const Words& words) {
  if (words.size() < 5) return std::nullopt;
  const std::optional<uint64_t> operations = ReadOperations(words, 3);
  RasCount count;
  if (!operations) return std::nullopt;
  count.operations = *operations;
  if (const auto rank = ReadRank(words)) {
    count.ranks = 1;
    count.named.push_back(*rank);
    return count;
  }
  uint64_t ranks = 0;
  if (words[1] != "ranks" || !absl::SimpleAtoi(words[0], &ranks)) return std::nullopt;
  count.ranks = ranks;
  return count;
}

// "#0-0 (fa93daea854b060b) MISMATCH", "INCOMPLETE", "DEAD".
std::optional<RasFinding> ReadHeading(const Words& words) {
  static const std::map<std::string, RasFinding::Kind> kKinds = {
      {"MISMATCH", RasFinding::Kind::kMismatch},
      {"INCOMPLETE", RasFinding::Kind::kIncomplete},
      {"DEAD", RasFinding::Kind::kDead}};
  if (words.empty()) return std::nullopt;
  const auto kind = kKinds.find(words.back());
  if (kind == kKinds.end()) return std::nullopt;
  RasFinding finding;
  finding.kind = kind->second;
  if (words.size() == 1) return finding;
  if (words.size() != 3 || words[0][0] != '#') return std::nullopt;
  const std::string hash(absl::StripSuffix(absl::StripPrefix(words[1], "("), ")"));
  if (!absl::SimpleHexAtoi(hash, &finding.communicator)) return std::nullopt;
  return finding;
}

// `left`: how many more ranks may be named.
void AddRank(const RasRank& rank, RasFinding* finding, size_t* left) {
  std::vector<RasRank>* ranks =
      finding->counts.empty() ? &finding->lost : &finding->counts.back().named;
  if (ranks->size() >= kMostRasRanks || *left == 0) return;
  ranks->push_back(rank);
  --*left;
}

// The operation of "Communicator ranks have different AllReduce operation counts": "" for
// "collective", which means all together. Nothing for other lines.
std::optional<std::string> ReadOperation(const Words& words) {
  const auto different = std::find(words.begin(), words.end(), "different");
  if (different == words.end() || different + 1 == words.end()) return std::nullopt;
  return *(different + 1) == "collective" ? "" : *(different + 1);
}

// Adds the line to the last finding. One heading may stand above counts of several operations: each
// of them is a finding.
void ReadLine(const Words& words, std::vector<RasFinding>* findings, size_t* left) {
  RasFinding* finding = &findings->back();
  if (const auto operation = ReadOperation(words)) {
    if (!finding->counts.empty()) {
      findings->push_back({finding->kind, finding->communicator, "", {}, {}});
      finding = &findings->back();
    }
    finding->operation = *operation;
  } else if (const auto count = ReadCount(words)) {
    finding->counts.push_back(*count);
  } else if (const auto rank = ReadRank(words)) {
    AddRank(*rank, finding, left);
  }
}

std::string NameOf(const RasRank& rank) {
  if (rank.pid == 0) return absl::StrCat("rank ", rank.rank);
  const std::string where = absl::StrCat("process ", rank.pid, " on ", rank.node);
  return rank.rank < 0 ? where : absl::StrCat("rank ", rank.rank, " (", where, ")");
}

std::string Names(const std::vector<RasRank>& ranks) {
  Words names;
  for (const RasRank& rank : ranks) {
    if (names.size() < kNamed) names.push_back(NameOf(rank));
  }
  std::string text = absl::StrJoin(names, ", ");
  if (ranks.size() > kNamed) absl::StrAppend(&text, " and ", ranks.size() - kNamed, " more");
  return text;
}

std::string CountsInWords(const RasFinding& finding) {
  Words parts;
  for (const RasCount& count : finding.counts) {
    std::string part = absl::StrCat(CountInWords(count.ranks, "rank has", "ranks have"),
                                    " launched ", count.operations);
    if (!count.named.empty()) absl::StrAppend(&part, ": ", Names(count.named));
    parts.push_back(std::move(part));
  }
  return absl::StrCat("RAS: different numbers of ",
                      finding.operation.empty() ? "operations" : finding.operation, " calls on ",
                      absl::Hex(finding.communicator, absl::kZeroPad16), ": ",
                      absl::StrJoin(parts, "; "));
}

Op OperationNamed(const std::string& name) {
  static const std::map<std::string, Op> kOps = {{"AllReduce", Op::kAllReduce},
                                                 {"AllGather", Op::kAllGather},
                                                 {"Broadcast", Op::kBroadcast},
                                                 {"Reduce", Op::kReduce},
                                                 {"ReduceScatter", Op::kReduceScatter}};
  const auto at = kOps.find(name);
  return at == kOps.end() ? Op::kNone : at->second;
}

// The first call that not all ranks have launched.
CallRecord OpenCall(Op op, uint64_t position) {
  CallRecord record;
  record.position = position;
  record.args.op = op;
  record.entered_ns = record.returned_ns = 1;
  return record;
}

std::map<int32_t, RasRank> NamedRanks(const RasFinding& finding) {
  std::map<int32_t, RasRank> named;
  for (const RasCount& count : finding.counts) {
    for (const RasRank& rank : count.named) named.emplace(rank.rank, rank);
  }
  return named;
}

}  // namespace

size_t RanksOf(const RasFinding& finding) {
  size_t ranks = 0;
  for (const RasCount& count : finding.counts) {
    ranks = std::min(ranks + std::min(count.ranks, kMostRasRanks + 1), kMostRasRanks + 1);
  }
  return ranks;
}

bool RasBudget::Take(const RasFinding& finding) {
  const size_t ranks = RanksOf(finding);
  const bool fits = ranks <= kMostRasRanks && ranks <= left_;
  if (fits) {
    left_ -= ranks;
  } else {
    ++left_out_;
  }
  return fits;
}

std::string LeftOutInWords(size_t findings) {
  if (findings == 0) return "";
  return absl::StrCat("RAS: ", CountInWords(findings, "finding is", "findings are"),
                      " left out: one may be of ", kMostRasRanks, " ranks, and all together of ",
                      kMostRasRanksOfAll);
}

bool IsRasOutput(const std::string& text) {
  return absl::StrContains(text, "Job summary") && absl::StrContains(text, "Communicators...") &&
         absl::StrContains(text, "NCCL version");
}

std::vector<RasFinding> ReadRasOutput(const std::string& text) {
  std::vector<RasFinding> findings;
  size_t left = kMostRasRanksOfAll;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const Words words = SplitWords(absl::StripSuffix(line, "\r"));
    if (findings.size() >= kMostFindings) break;
    if (const auto heading = ReadHeading(words)) {
      findings.push_back(*heading);
    } else if (!findings.empty()) {
      ReadLine(words, &findings, &left);
    }
  }
  return findings;
}

std::map<int32_t, uint64_t> CountsByRank(const RasFinding& finding) {
  const size_t size = RanksOf(finding);
  if (size > kMostRasRanks) return {};
  std::map<int32_t, uint64_t> counts;
  const RasCount* unnamed = nullptr;
  for (const RasCount& count : finding.counts) {
    if (count.named.size() == count.ranks) {
      for (const RasRank& rank : count.named) counts[rank.rank] = count.operations;
    } else if (unnamed != nullptr || !count.named.empty()) {
      return {};
    } else {
      unnamed = &count;
    }
  }
  for (int32_t rank = 0; unnamed != nullptr && rank < static_cast<int32_t>(size); ++rank) {
    counts.emplace(rank, unnamed->operations);
  }
  const bool fits = counts.size() == size && !counts.empty() && counts.begin()->first == 0 &&
                    counts.rbegin()->first + 1 == static_cast<int32_t>(size);
  return fits ? counts : std::map<int32_t, uint64_t>();
}

std::vector<std::string> RasInWords(const std::vector<RasFinding>& findings) {
  Words lines;
  for (const RasFinding& finding : findings) {
    switch (finding.kind) {
      case RasFinding::Kind::kMismatch:
        if (!finding.counts.empty()) lines.push_back(CountsInWords(finding));
        break;
      case RasFinding::Kind::kIncomplete:
        if (!finding.lost.empty()) lines.push_back("RAS: no data of " + Names(finding.lost));
        break;
      case RasFinding::Kind::kDead:
        if (!finding.lost.empty()) lines.push_back("RAS: out of reach: " + Names(finding.lost));
        break;
    }
  }
  return lines;
}

size_t FillModel(const std::vector<RasFinding>& findings, JobModel* model) {
  model->SetOffline();
  uint32_t index = 0;
  std::set<uint64_t> known;
  RasBudget budget;
  for (const RasFinding& finding : findings) {
    if (known.count(finding.communicator) > 0 || !budget.Take(finding)) continue;
    const std::map<int32_t, uint64_t> counts = CountsByRank(finding);
    if (counts.empty() || !known.insert(finding.communicator).second) continue;
    uint64_t least = UINT64_MAX;
    for (const auto& [rank, count] : counts) least = std::min(least, count);
    const std::map<int32_t, RasRank> named = NamedRanks(finding);
    for (const auto& [rank, count] : counts) {
      const auto place = named.find(rank);
      const RasRank at = place == named.end() ? RasRank() : place->second;
      ProcessIdentity identity;
      identity.host = at.node;
      identity.global_rank = at.global_rank;
      identity.has_segment = true;
      const int32_t process =
          model->AddProcess(at.node, std::max(at.pid, 0), static_cast<uint64_t>(index) + 1);
      model->SetIdentity(process, identity);
      CommProgress progress;
      progress.index = index++;
      progress.id = finding.communicator;
      progress.rank = rank;
      progress.size = static_cast<int32_t>(counts.size());
      progress.state = MemberState::kReady;
      progress.device = at.device;
      progress.has_markers = true;
      progress.entered = progress.returned = progress.started = count;
      progress.finished = least;
      progress.waiting_since_ns = count > least ? 1 : 0;
      const Op op = OperationNamed(finding.operation);
      if (count > least && op != Op::kNone) progress.records.push_back(OpenCall(op, least));
      model->SetProgress(process, progress, 1);
    }
  }
  return budget.left_out();
}

}  // namespace rollcall
