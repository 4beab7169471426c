// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/awaited_stacks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/words/terms.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kAnswersWithinNs = kSecond;  // an agent that reports; ticks are a tenth of it
constexpr char kBegin[] = "stacks of ";
constexpr char kThen[] = ": not there within ";

bool HasSample(const v1::Incident& incident, const std::string& host, int32_t pid) {
  return std::any_of(
      incident.stacks().begin(), incident.stacks().end(), [&](const v1::ProcessStack& stack) {
        return stack.host() == host && stack.pid() == pid && !stack.threads().empty();
      });
}

}  // namespace

void AwaitedStacks::Add(const StackRequest& request, int64_t now_ns) {
  requested_ns_ = now_ns;
  open_ += static_cast<int>(request.processes.size());
  if (request.is_rest) return;
  for (const RequestedProcess& process : request.processes) {
    owed_[{process.host, process.pid}] = {process.rank, process.agent};
  }
}

void AwaitedStacks::Remove(const StackResult& result) {
  --open_;
  if (!result.is_rest) owed_.erase({result.stack.host(), result.stack.pid()});
}

void AwaitedStacks::Hear(const JobState& state) {
  if (empty()) return;
  int64_t heard_ns = 0;
  for (const AgentState& agent : state.agents) {
    const bool owes = std::any_of(owed_.begin(), owed_.end(), [&](const auto& process) {
      return process.second.agent == agent.id;
    });
    if (owes) heard_ns = std::max(heard_ns, agent.heard_ns);
  }
  heard_ns_ = heard_ns;
}

bool AwaitedStacks::MayComeSoon(int64_t now_ns) const {
  const int64_t waited_ns = now_ns - requested_ns_;
  if (waited_ns < kStacksWithinNs) return true;
  return waited_ns < kLateStacksWithinNs && !owed_.empty() && now_ns - heard_ns_ < kAnswersWithinNs;
}

void AwaitedStacks::Explain(int64_t now_ns, v1::Incident* incident) const {
  if (incident->verdicts().empty()) return;
  auto* lines = incident->mutable_verdicts(0)->mutable_missing_evidence();
  const auto said = std::remove_if(lines->begin(), lines->end(), [](const std::string& line) {
    return absl::StartsWith(line, kBegin) && absl::StrContains(line, kThen);
  });
  lines->erase(said, lines->end());
  std::vector<int32_t> ranks;
  for (const auto& [process, owed] : owed_) {
    const bool has_earlier = HasSample(*incident, process.first, process.second);
    if (owed.rank >= 0 && !has_earlier) ranks.push_back(owed.rank);
  }
  if (ranks.empty()) return;
  std::sort(ranks.begin(), ranks.end());
  *lines->Add() =
      absl::StrCat(kBegin, RanksInWords(ranks), kThen, DurationInWords(now_ns - requested_ns_));
}

}  // namespace rollcall
