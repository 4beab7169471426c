// SPDX-License-Identifier: Apache-2.0
#include "daemon/ras/ras_json.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/clean_text.h"
#include "base/cut_text.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr size_t kDeepestRas = 8;
constexpr size_t kMostRasFindings = 1024;
constexpr size_t kMostRanksOfRas = 1 << 16;  // of a communicator
constexpr size_t kMostOperations = 16;
constexpr size_t kMostNameBytes = 256;

struct CountedRank {
  RasRank rank;
  std::map<std::string, uint64_t> launched;  // by operation
  bool is_dead = false;                      // RAS has given it up
};

struct RasCommunicator {
  uint64_t hash = 0;
  std::vector<CountedRank> ranks, missing;
};

RasFinding FindingOf(const RasCommunicator& communicator, RasFinding::Kind kind) {
  RasFinding finding;
  finding.kind = kind;
  finding.communicator = communicator.hash;
  return finding;
}

// The operation's counts, most ranks first; one count: all ranks agree.
std::vector<RasCount> CountsOf(const RasCommunicator& communicator, const std::string& operation) {
  std::map<uint64_t, RasCount> by_number;
  for (const CountedRank& one : communicator.ranks) {
    const auto launched = one.launched.find(operation);
    const uint64_t number = launched == one.launched.end() ? 0 : launched->second;
    RasCount& count = by_number[number];
    count.operations = number;
    ++count.ranks;
    count.named.push_back(one.rank);
  }
  std::vector<RasCount> counts;
  for (auto& [number, count] : by_number) counts.push_back(std::move(count));
  std::stable_sort(counts.begin(), counts.end(),
                   [](const RasCount& a, const RasCount& b) { return a.ranks > b.ranks; });
  return counts;
}

void AddFindings(const RasCommunicator& communicator, std::vector<RasFinding>* findings) {
  std::set<std::string> operations;
  for (const CountedRank& one : communicator.ranks) {
    for (const auto& [operation, number] : one.launched) operations.insert(operation);
  }
  for (const std::string& operation : operations) {
    RasFinding finding = FindingOf(communicator, RasFinding::Kind::kMismatch);
    finding.operation = operation;
    finding.counts = CountsOf(communicator, operation);
    if (finding.counts.size() > 1) findings->push_back(std::move(finding));
  }
  for (const bool is_dead : {false, true}) {
    RasFinding finding =
        FindingOf(communicator, is_dead ? RasFinding::Kind::kDead : RasFinding::Kind::kIncomplete);
    for (const CountedRank& one : communicator.missing) {
      if (one.is_dead == is_dead) finding.lost.push_back(one.rank);
    }
    if (!finding.lost.empty()) findings->push_back(std::move(finding));
  }
}

// Sees each piece of the text, and keeps one communicator at a time, which `take` gets. `false`
// ends the parser.
class RasReader : public nlohmann::json_sax<json> {
 public:
  explicit RasReader(std::function<bool(const RasCommunicator&)> take) : take_(std::move(take)) {}

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (rank_ != nullptr && value && key_ == "considered_dead") rank_->is_dead = true;
    return true;
  }
  bool number_integer(number_integer_t value) override { return Number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(value > INT64_MAX ? INT64_MAX : static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& text) override {
    if (rank_ != nullptr && key_ == "host")
      rank_->rank.node = CutText(CleanText(text), kMostNameBytes);
    if (path_.size() == kCommunicatorDepth && key_ == "hash" &&
        !absl::SimpleHexAtoi(absl::StripPrefix(text, "0x"), &communicator_.hash)) {
      communicator_.hash = 0;
    }
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool start_object(std::size_t) override {
    path_.push_back(key_);
    if (IsAt("communicators", kCommunicatorDepth)) communicator_ = {};
    if (IsAt("communicators", kRankDepth)) BeginRank();
    key_.clear();
    return path_.size() <= kDeepestRas;
  }
  bool end_object() override {
    if (path_.size() == kRankDepth) rank_ = nullptr;
    const bool is_whole = IsAt("communicators", kCommunicatorDepth);
    path_.pop_back();
    return !is_whole || take_(communicator_);
  }
  bool start_array(std::size_t) override {
    path_.push_back(key_);
    return path_.size() <= kDeepestRas;
  }
  bool end_array() override {
    path_.pop_back();
    key_.clear();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  // {"communicators": [{"ranks": [{
  static constexpr size_t kCommunicatorDepth = 3, kRankDepth = 5;

  bool IsAt(const char* list, size_t depth) const {
    return path_.size() == depth && path_[1] == list;
  }

  void BeginRank() {
    const bool is_missing = path_[3] == "missing_ranks";
    std::vector<CountedRank>& ranks = is_missing ? communicator_.missing : communicator_.ranks;
    if ((!is_missing && path_[3] != "ranks") || ranks.size() >= kMostRanksOfRas) return;
    ranks.emplace_back();
    rank_ = &ranks.back();
  }

  bool Number(int64_t value) {
    if (rank_ == nullptr || value < 0) return true;
    const auto small = static_cast<int32_t>(std::min<int64_t>(value, INT32_MAX));
    if (path_.size() == kRankDepth) {
      if (key_ == "rank") rank_->rank.rank = small;
      if (key_ == "pid") rank_->rank.pid = small;
      if (key_ == "cuda_dev") rank_->rank.device = small;
    } else if (path_.back() == "collective_counts" && rank_->launched.size() < kMostOperations) {
      rank_->launched[CutText(CleanText(key_), kMostNameBytes)] = static_cast<uint64_t>(value);
    }
    return true;
  }

  const std::function<bool(const RasCommunicator&)> take_;
  std::vector<std::string> path_;  // the names of what is open
  std::string key_;                // of the value that follows
  RasCommunicator communicator_;
  CountedRank* rank_ = nullptr;  // in `communicator_`
};

}  // namespace

bool IsRasJson(absl::string_view text) {
  const absl::string_view head = text.substr(0, 4096);
  return absl::StartsWith(head, "{") && absl::StrContains(head, "\"nccl_version\"");
}

std::vector<RasFinding> ReadRasJson(absl::string_view text) {
  std::vector<RasFinding> findings;
  RasReader reader([&findings](const RasCommunicator& communicator) {
    AddFindings(communicator, &findings);
    return findings.size() < kMostRasFindings;
  });
  json::sax_parse(text.begin(), text.end(), &reader);
  return findings;
}

std::vector<std::vector<RasRank>> ReadRasMembers(absl::string_view text) {
  std::vector<std::vector<RasRank>> communicators;
  size_t left = kMostRanksRead;
  RasReader reader([&](const RasCommunicator& communicator) {
    std::vector<RasRank> ranks;
    for (const auto* list : {&communicator.ranks, &communicator.missing}) {
      for (const CountedRank& one : *list) ranks.push_back(one.rank);
    }
    if (ranks.size() > left) return false;
    left -= ranks.size();
    communicators.push_back(std::move(ranks));
    return true;
  });
  json::sax_parse(text.begin(), text.end(), &reader);
  return communicators;
}

}  // namespace rollcall
