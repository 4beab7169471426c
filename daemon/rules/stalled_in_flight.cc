#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/rules/absence.h"
#include "daemon/rules/describe.h"
#include "daemon/rules/rules.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

struct Stall {
  uint64_t call = UINT64_MAX;
  int64_t since_ns = 0;  // when the last one joined: before, the others waited for it
  std::vector<Waiter> inside;
};

Stall FirstOpenCall(const std::vector<Waiter>& waiters) {
  Stall stall;
  for (const Waiter& w : waiters) {
    if (w.wait.evidence != Evidence::kIndirect) stall.call = std::min(stall.call, w.wait.call);
  }
  for (const Waiter& w : waiters) {
    if (w.wait.evidence == Evidence::kIndirect || w.wait.call != stall.call) continue;
    stall.since_ns = std::max(stall.since_ns, w.wait.since_ns);
    stall.inside.push_back(w);
  }
  return stall;
}

// Is this rank in the call, or beyond it, and still there?
bool TakesPart(const JobState& job, const Communicator& comm, const Member& member,
               const Stall& stall) {
  if (member.entered <= stall.call) return false;
  if (member.has_markers && member.finished > stall.call) return true;
  const std::optional<Wait> wait = WaitOf(job, comm, member);
  if (!wait || wait->evidence == Evidence::kIndirect) return false;
  // Without markers only ranks that have come equally far are surely in one call.
  return member.has_markers || member.entered == stall.call + 1;
}

bool AllTakePart(const JobState& job, const Communicator& comm, const Stall& stall) {
  if (!UnknownRanks(comm).empty()) return false;
  return std::all_of(comm.members.begin(), comm.members.end(), [&](const auto& entry) {
    return InRange(comm, entry.first) && TakesPart(job, comm, entry.second, stall);
  });
}

// All waits shown: certain. None: the GPUs may as well be busy with other work.
Certainty CertaintyOf(const Stall& stall) {
  size_t shown = 0;
  for (const Waiter& w : stall.inside) shown += w.wait.evidence == Evidence::kShown;
  if (shown == 0) return Certainty::kPossible;
  return shown == stall.inside.size() ? Certainty::kCertain : Certainty::kLikely;
}

bool IsStopped(const JobState& job, int32_t process) {
  const Process* known = ProcessOf(job, process);
  return known != nullptr && (known->state == 'T' || known->state == 't');
}

// A rank that was stopped (SIGSTOP, a debugger) cannot do its part of the call.
void AddStopped(const JobState& job, const Communicator& comm, const Stall& stall,
                Verdict* verdict) {
  for (const Waiter& w : stall.inside) {
    if (!IsStopped(job, w.process)) continue;
    verdict->culprits.push_back(MakeCulprit(job, w.process, w.rank, &comm.members.at(w.rank)));
    verdict->evidence.push_back(absl::StrCat("rank ", PublicRank(job, w.process, w.rank),
                                             " is stopped, by a signal or a debugger"));
  }
}

void AddCulprits(const JobState& job, const Communicator& comm, const Stall& stall,
                 Verdict* verdict) {
  AddStopped(job, comm, stall, verdict);
  // With nobody further than the others nobody can be told apart.
  if (!verdict->culprits.empty() || stall.inside.size() == comm.members.size()) return;
  for (const Waiter& w : stall.inside) {
    verdict->culprits.push_back(MakeCulprit(job, w.process, w.rank, &comm.members.at(w.rank)));
  }
  verdict->evidence.push_back(absl::StrCat(comm.members.size() - stall.inside.size(),
                                           " ranks have finished the call, as their markers show"));
}

}  // namespace

std::vector<Verdict> FindStalledCalls(const JobState& job, int64_t now_ns, const Limits& limits) {
  std::vector<Verdict> verdicts;
  for (const auto& [id, comm] : job.communicators) {
    if (comm.size <= 1 || comm.size > kMaxRanks) continue;
    const Stall stall = FirstOpenCall(WaitersOf(job, comm));
    if (stall.inside.empty() || !AllTakePart(job, comm, stall)) continue;
    if (now_ns - stall.since_ns < limits.suspect_after_ns) continue;

    Verdict verdict;
    verdict.cause = Cause::kStalledInFlight;
    verdict.certainty = CertaintyOf(stall);
    SetCommunicator(comm, &verdict);
    verdict.position = stall.call;
    verdict.call = CallAt(comm, stall.call);
    verdict.since_ns = stall.since_ns;
    verdict.waited_ns = now_ns - stall.since_ns;
    for (const Waiter& w : stall.inside) {
      if (IsStopped(job, w.process)) continue;
      verdict.waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
      verdict.waiting_processes.push_back(w.process);
    }
    verdict.evidence = EvidenceOf(job, stall.inside, OpInWords(verdict.call.op));
    verdict.missing_evidence = MissingOf(job, stall.inside);
    AddCulprits(job, comm, stall, &verdict);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace rollcall
