// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/side_waits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/rules/blame.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

bool IsInsideACall(const Process& process, uint32_t tid) {
  return std::any_of(process.blocked.begin(), process.blocked.end(),
                     [tid](const BlockedCall& blocked) { return blocked.thread == tid; });
}

bool WaitsForAThread(const StackPlace& place) {
  return place.sleeps && (HasWait(place.functions, waits::kThread) ||
                          HasWait(place.functions, waits::kThreadOfCode));
}

// Whether its stacks, taken during the wait, show that the main thread waits for another one, and
// that nothing else of the program runs.
bool IsKnownToStand(const JobState& job, const Waiter& waiter) {
  const Process* process = FindProcess(job, waiter.process);
  if (process == nullptr || process->stacks_ns == 0) return false;
  if (process->stacks_ns < waiter.wait.since_ns) return false;
  bool main_waits = false;
  for (const ThreadPlace& thread : process->thread_places) {
    if (thread.tid == static_cast<uint32_t>(process->pid)) {
      main_waits = WaitsForAThread(thread.place);
    } else if (!thread.place.sleeps && !IsInsideACall(*process, thread.tid)) {
      return false;
    }
  }
  return main_waits;
}

// The wait of a main thread inside a call is another one.
bool GoesOn(const JobState& job, const LiveRanks& live, const Waiter& waiter) {
  const Process* process = FindProcess(job, waiter.process);
  return live.GoesOn(waiter.process, waiter.wait.since_ns) ||
         (process != nullptr && IsMainInside(*process));
}

void AddWith(const StuckCall& call, std::vector<Waiter> waiters, std::deque<StuckCall>* changed,
             StuckCalls* calls) {
  if (waiters.empty()) return;
  if (waiters.size() == call.waiters.size()) return calls->push_back(&call);
  changed->push_back(call);
  changed->back().waiters = std::move(waiters);
  calls->push_back(&changed->back());
}

}  // namespace

SideWaits SplitSideWaits(const JobState& job, const StuckCalls& calls, const LiveRanks& live) {
  SideWaits split;
  for (const StuckCall* call : calls) {
    if (!call->is_beside) {
      split.calls.push_back(call);
      continue;
    }
    std::vector<Waiter> stand, unsure;
    for (const Waiter& waiter : call->waiters) {
      if (GoesOn(job, live, waiter)) continue;
      (IsKnownToStand(job, waiter) ? stand : unsure).push_back(waiter);
    }
    AddWith(*call, std::move(stand), &split.changed, &split.calls);
    AddWith(*call, std::move(unsure), &split.changed, &split.unsure);
  }
  return split;
}

std::optional<Verdict> JudgeSideWaits(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                      const Limits& limits) {
  const StuckCall* oldest = nullptr;
  for (const StuckCall* call : calls) {
    if (!call->is_beside) continue;
    if (oldest == nullptr || call->since_ns < oldest->since_ns) oldest = call;
  }
  if (oldest == nullptr) return std::nullopt;
  const Suspicion suspicion{job, *oldest, {}, now_ns, limits};
  std::optional<Verdict> verdict =
      Describe(suspicion, Cause::kUnmatchedP2p, limits.suspect_after_ns);
  if (!verdict) return verdict;
  verdict->certainty = Certainty::kPossible;
  verdict->is_idle = verdict->waits_beside = true;
  verdict->missing_evidence.push_back(
      absl::StrCat("whether ", RanksInWords(verdict->waiting_ranks),
                   PluralForm(verdict->waiting_ranks.size(), " stands", " stand"),
                   ": a thread beside the main one waits, and may serve requests"));
  return verdict;
}

}  // namespace rollcall
