// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/life/incident_ranks.h"

#include <algorithm>
#include <optional>
#include <set>

#include "daemon/model/progress.h"

namespace rollcall {
namespace {

bool IsSilentSince(const Process& process, int64_t before_ns) {
  return process.liveness == Liveness::kSilent && process.silent_since_ns <= before_ns;
}

bool IsOnSilentHost(const JobState& state, int32_t process) {
  const AgentState* agent = FindAgent(state, process);
  return agent != nullptr && agent->silent;
}

bool CountsAsRank(const JobState& state, const Process& process) {
  if (state.communicators.empty()) return process.global_rank >= 0;
  return process.has_segment || (process.global_rank >= 0 && process.waits_outside_since_ns != 0);
}

// The ranks that the verdict calls absent have all entered the call since.
bool HaveAllCome(const Communicator& comm, const Verdict& v) {
  if (v.cause != Cause::kMissingRank && v.cause != Cause::kHostLost) return false;
  std::set<int32_t> absent;
  for (const Culprit& culprit : v.culprits) absent.insert(culprit.process);
  for (const auto& [rank, member] : comm.members) {
    if (member.entered > v.position) absent.erase(member.process);
  }
  return absent.empty();
}

// When the member began to wait in the verdict's call; 0 if it does not wait there now.
int64_t WaitsInCallSince(const JobState& state, const Communicator& comm, const Member& member,
                         const Verdict& verdict) {
  if (HasEnded(state, member.process)) return 0;
  if (verdict.cause == Cause::kInitIncomplete) {
    return member.state == MemberState::kInitializing ? member.init_entered_ns : 0;
  }
  const std::optional<Wait> wait = FindWait(state, comm, member);
  return wait.has_value() && wait->position == verdict.position ? wait->since_ns : 0;
}

// Whether a waiting rank of the verdict waits in the same call, by a count from after `after_ns`,
// and for an absent one.
bool AnyStillWaits(const JobState& state, const Verdict& verdict, int64_t after_ns) {
  const auto comm = state.communicators.find(verdict.communicator);
  if (comm == state.communicators.end() || OpKind(verdict.call.op) == CallKind::kP2p) return false;
  if (HaveAllCome(comm->second, verdict)) return false;
  const std::set<int32_t> waiting(verdict.waiting_processes.begin(),
                                  verdict.waiting_processes.end());
  return std::any_of(comm->second.members.begin(), comm->second.members.end(),
                     [&](const auto& entry) {
                       const Member& member = entry.second;
                       return waiting.count(member.process) != 0 &&
                              WaitsInCallSince(state, comm->second, member, verdict) > after_ns;
                     });
}

}  // namespace

bool HasEnded(const JobState& state, int32_t process) {
  return HowProcessEnded(state, process) != Gone::kNo;
}

size_t CountEndedRanks(const JobState& state, size_t from) {
  size_t ended = 0;
  for (size_t i = from; i < state.processes.size(); ++i) {
    ended += CountsAsRank(state, state.processes[i]) && HasEnded(state, static_cast<int32_t>(i));
  }
  return ended;
}

std::vector<int32_t> UnheardRanks(const JobState& state) {
  std::vector<int32_t> unheard;
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const auto process = static_cast<int32_t>(i);
    if (!HasEnded(state, process) && !IsHeard(state, process)) unheard.push_back(process);
  }
  return unheard;
}

size_t TakeEndedBy(const JobState& state, int64_t by_ns, std::vector<int32_t>* unheard) {
  size_t ended = 0;
  const auto is_heard = [&](int32_t index) {
    const Process* process = FindProcess(state, index);
    if (process == nullptr) return false;
    if (!HasEnded(*process)) return IsHeard(state, index);
    ended += CountsAsRank(state, *process) && process->ended_after_ns <= by_ns;
    return true;
  };
  unheard->erase(std::remove_if(unheard->begin(), unheard->end(), is_heard), unheard->end());
  return ended;
}

bool HaveAllExited(const JobState& state) {
  return std::all_of(state.processes.begin(), state.processes.end(), [&](const Process& process) {
    return !CountsAsRank(state, process) ||
           (process.liveness == Liveness::kExited && process.exit_code <= 0);
  });
}

bool HasJobEnded(const JobState& state, int64_t now_ns, int64_t lost_for_good_ns) {
  bool is_seen = false;
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const auto process = static_cast<int32_t>(i);
    const bool has_ended = HasEnded(state, process);
    if (!has_ended && !IsSilentSince(state.processes[i], now_ns - lost_for_good_ns)) return false;
    is_seen = is_seen || (has_ended && !IsOnSilentHost(state, process));
  }
  return is_seen;
}

bool AnyWaiterIsHeard(const JobState& state, const std::vector<Verdict>& verdicts) {
  bool any = false;
  for (const Verdict& v : verdicts) {
    for (const int32_t process : v.waiting_processes) {
      if (IsHeard(state, process)) return true;
      any = true;
    }
  }
  return !any;
}

bool IsCountedAnew(const JobState& state, const Verdict& verdict, int64_t opened_ns) {
  return AnyStillWaits(state, verdict, opened_ns);
}

bool AwaitsVerdictOnEnd(const JobState& state, const Verdict& verdict) {
  const auto has_ended = [&](const Culprit& culprit) { return HasEnded(state, culprit.process); };
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(), has_ended) &&
         AnyStillWaits(state, verdict, 0);
}

}  // namespace rollcall
