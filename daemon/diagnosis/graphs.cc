// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/graphs.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostGraphCalls = 8;  // captured ones to name

GraphCall FindGraphCall(const Member& member, const CallRecord& record) {
  for (const GraphLaunch& launch : member.graph_launches) {
    const uint64_t end = launch.first_record + launch.records;
    if (record.index < launch.first_record || record.index >= end) continue;
    return {launch.graph, launch.launch, record.index - launch.first_record + 1, launch.records};
  }
  return {};
}

// The ranks that made the call by the launch of a graph, and those that made it directly.
struct CallOrigins {
  std::vector<int32_t> replayed, direct;
  GraphCall graph_call;
  bool markers_inside = false;
};

CallOrigins FindCallOrigins(const JobState& job, const Communicator& comm, uint64_t position) {
  CallOrigins origins;
  for (const auto& [rank, member] : comm.members) {
    const CallRecord* record = FindCollective(member, position);
    if (record == nullptr) continue;
    const int32_t known = PublicRank(job, member.process, rank);
    (record->replayed ? origins.replayed : origins.direct).push_back(known);
    if (!record->replayed || origins.graph_call.graph != 0) continue;
    origins.graph_call = FindGraphCall(member, *record);
    origins.markers_inside = member.has_graph_markers;
  }
  return origins;
}

// The call that the rank captured where the others made the call at `position`, or nullptr.
const CallRecord* CapturedInstead(const Member& member, uint64_t position) {
  if (member.records.empty()) return nullptr;
  const CallRecord& newest = member.records.back();
  return newest.captured && newest.position == position ? &newest : nullptr;
}

void AddCaptured(const Communicator& comm, Verdict* verdict) {
  std::map<int32_t, const CallRecord*> captured;  // by process
  for (const auto& [rank, member] : comm.members) {
    const CallRecord* record = CapturedInstead(member, verdict->position);
    if (record != nullptr) captured.emplace(member.process, record);
  }
  if (captured.empty()) return;
  std::map<std::string, std::vector<int32_t>> ranks;  // by call
  for (const Culprit& culprit : verdict->culprits) {
    const auto record = captured.find(culprit.process);
    if (record != captured.end()) {
      ranks[CallInWords(record->second->args)].push_back(culprit.rank);
    }
  }
  verdict->captured = verdict->captured || !ranks.empty();
  size_t lines = 0;
  for (const auto& [call, those] : ranks) {
    if (lines++ == kMostGraphCalls) break;
    verdict->evidence.push_back(absl::StrCat(
        RanksInWords(those), PluralForm(those.size(), " has", " have"), " captured ", call,
        " into a CUDA graph: the call runs only when the program launches ", "the graph"));
  }
}

// A rank with a replayed call keeps the newest launches.
bool UsesGraphs(const Communicator& comm) {
  return std::any_of(comm.members.begin(), comm.members.end(),
                     [](const auto& entry) { return !entry.second.graph_launches.empty(); });
}

bool IsStuckInside(Cause cause) {
  return cause == Cause::kStalledInFlight || cause == Cause::kBlockedBeforeStart;
}

}  // namespace

void AddGraphs(const JobState& job, Verdict* verdict) {
  const auto found = job.communicators.find(verdict->communicator);
  if (found == job.communicators.end()) return;
  const Communicator& comm = found->second;
  AddCaptured(comm, verdict);
  if (OpKind(verdict->call.op) != CallKind::kCollective || !UsesGraphs(comm)) return;
  const CallOrigins origins = FindCallOrigins(job, comm, verdict->position);
  if (origins.replayed.empty()) return;
  verdict->graph = origins.graph_call;
  if (!origins.direct.empty()) {
    verdict->evidence.push_back(absl::StrCat(
        RanksInWords(origins.replayed), PluralForm(origins.replayed.size(), " makes", " make"),
        " the call from a CUDA graph, but ", RanksInWords(origins.direct),
        PluralForm(origins.direct.size(), " makes", " make"), " it directly"));
  }
  if (IsStuckInside(verdict->cause) && origins.graph_call.calls > 1 && !origins.markers_inside) {
    verdict->missing_evidence.push_back(
        absl::StrCat("no evidence in which of the graph's ", origins.graph_call.calls,
                     " calls the ranks wait: the sentence names the first "
                     "(ROLLCALL_GRAPH_MARKERS=1 finds the call)"));
  }
}

}  // namespace rollcall
