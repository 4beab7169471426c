// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/graphs.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

GraphPlace PlaceOf(const Member& member, const CallRecord& record) {
  for (const GraphLaunch& launch : member.graph_launches) {
    if (record.index < launch.first_record || record.index >= launch.first_record + launch.records)
      continue;
    return {launch.graph, launch.launch, record.index - launch.first_record + 1, launch.records};
  }
  return {};
}

// The members that made the call from a graph, and those that made it at once.
struct Ways {
  std::vector<int32_t> replayed, direct;
  GraphPlace place;
  bool markers_inside = false;
};

Ways WaysOf(const JobState& job, const Communicator& comm, uint64_t position) {
  Ways ways;
  for (const auto& [rank, member] : comm.members) {
    const CallRecord* record = FindCollective(member, position);
    if (record == nullptr) continue;
    const int32_t known = PublicRank(job, member.process, rank);
    (record->replayed ? ways.replayed : ways.direct).push_back(known);
    if (!record->replayed || ways.place.graph != 0) continue;
    ways.place = PlaceOf(member, *record);
    ways.markers_inside = member.has_graph_markers;
  }
  return ways;
}

// What the rank captured where the others made the call at `position`; nullptr: nothing.
const CallRecord* CapturedInstead(const Member& member, uint64_t position) {
  if (member.records.empty()) return nullptr;
  const CallRecord& newest = member.records.back();
  return newest.captured && newest.position == position ? &newest : nullptr;
}

void AddCaptured(const Communicator& comm, Verdict* verdict) {
  for (const Culprit& culprit : verdict->culprits) {
    for (const auto& [rank, member] : comm.members) {
      if (member.process != culprit.process) continue;
      const CallRecord* captured = CapturedInstead(member, verdict->position);
      if (captured == nullptr) continue;
      verdict->captured = true;
      verdict->evidence.push_back(
          absl::StrCat("rank ", culprit.rank, " has captured ", CallInWords(captured->args),
                       " into a CUDA graph: the call runs only when the program launches "
                       "the graph"));
    }
  }
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
  if (KindOf(verdict->call.op) != CallKind::kCollective) return;
  const Ways ways = WaysOf(job, comm, verdict->position);
  if (ways.replayed.empty()) return;
  verdict->graph = ways.place;
  if (!ways.direct.empty()) {
    verdict->evidence.push_back(absl::StrCat(
        RanksInWords(ways.replayed), ways.replayed.size() == 1 ? " makes" : " make",
        " the call from a CUDA graph, ", RanksInWords(ways.direct), " without one"));
  }
  if (IsStuckInside(verdict->cause) && ways.place.calls > 1 && !ways.markers_inside) {
    verdict->missing_evidence.push_back(
        absl::StrCat("no evidence which of the graph's ", ways.place.calls,
                     " calls it is: the sentence names the first (ROLLCALL_GRAPH_MARKERS=1 finds "
                     "the call)"));
  }
}

}  // namespace rollcall
