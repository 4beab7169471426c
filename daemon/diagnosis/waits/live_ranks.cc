// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/live_ranks.h"

#include <algorithm>

#include "daemon/model/calling_threads.h"

namespace rollcall {

bool IsOfMessages(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kP2p && call.communicator->counts_messages;
}

LiveRanks::LiveRanks(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                     const Limits& limits)
    : job_(job), lately_ns_(now_ns - limits.suspect_after_ns) {
  const bool any = std::any_of(calls.begin(), calls.end(),
                               [](const StuckCall* call) { return IsOfMessages(*call); });
  if (any) newest_ = NewestCallTimes(job);
}

int64_t LiveRanks::Newest(int32_t process) const {
  const bool is_known = process >= 0 && static_cast<size_t>(process) < newest_.size();
  return is_known ? newest_[static_cast<size_t>(process)] : 0;
}

bool LiveRanks::GoesOn(int32_t process, int64_t since_ns) const {
  const int64_t newest_ns = Newest(process);
  return newest_ns > since_ns && newest_ns > lately_ns_;
}

bool LiveRanks::Listens(int32_t process) const {
  const Process* known = FindProcess(job_, process);
  return known != nullptr &&
         std::any_of(known->blocked.begin(), known->blocked.end(), [&](const BlockedCall& blocked) {
           return FindMessageThreads(*known, blocked.communicator).is_beside;
         });
}

std::vector<int32_t> LiveRanks::FindProcesses() const {
  std::vector<int32_t> processes;
  if (newest_.empty()) return processes;
  for (const auto& [id, comm] : job_.communicators) {
    if (!comm.counts_messages) continue;
    for (const auto& [rank, member] : comm.members) {
      if (HowProcessEnded(job_, member.process) == Gone::kNo) processes.push_back(member.process);
    }
  }
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  return processes;
}

void CountFromNewestCall(const JobState& job, const LiveRanks& live, Verdict* verdict) {
  if (verdict->cause != Cause::kUnmatchedP2p || verdict->culprits.empty()) return;
  int64_t stands_ns = INT64_MAX;
  for (const Culprit& culprit : verdict->culprits) {
    const Process* process = FindProcess(job, culprit.process);
    if (process == nullptr || IsMainInside(*process) || live.Listens(culprit.process)) return;
    stands_ns = std::min(stands_ns, live.Newest(culprit.process));
  }
  if (stands_ns <= verdict->since_ns) return;
  verdict->counts_from_ns = std::max(verdict->counts_from_ns, stands_ns);
}

}  // namespace rollcall
