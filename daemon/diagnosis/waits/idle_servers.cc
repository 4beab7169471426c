// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/idle_servers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/model/progress.h"
#include "daemon/model/waits/idle_loops.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/stops.h"

namespace rollcall {
namespace {

// Whether a thread with a function of the program on its stack handles a request.
bool HandlesARequest(const WaitFrame& loop, const StackPlace& place) {
  return (loop.kinds & waits::kServerOfThreads) != 0 || HasWait(place.functions, waits::kRequest);
}

bool IsIdle(const Process& process, const StackPlace& place) {
  const WaitFrame* loop = FindIdleLoop(place.functions);
  if (loop == nullptr) return false;
  return std::none_of(
      process.thread_places.begin(), process.thread_places.end(), [&](const ThreadPlace& thread) {
        return thread.place.functions != place.functions && HandlesARequest(*loop, thread.place);
      });
}

constexpr size_t kLeastRequests = 4;  // calls on a communicator that brings requests

// What the program's own threads put into a queue may be an answer as well as a request.
bool WaitsForInput(const StackPlace& place) { return IsWait(place.inside, waits::kInput); }

bool IsNamedInput(const StackPlace& place) {
  const auto& inputs = WaitFramesOf(waits::kLoopInput);
  return std::any_of(inputs.begin(), inputs.end(), [&](const WaitFrame& input) {
    absl::string_view name = place.inside;
    return absl::ConsumeSuffix(&name, input.name) && (name.empty() || name.back() == '.');
  });
}

bool IsARank(const JobState& job, const std::string& host, int32_t pid) {
  return std::any_of(job.processes.begin(), job.processes.end(), [&](const Process& process) {
    return process.pid == pid && process.host == host && process.has_met && !HasEnded(process);
  });
}

// Only ranks write what it reads. Ranks that one process has started may have its ends open, too.
bool IsFromRanks(const JobState& job, const Process& process, const StackPlace& place) {
  return !place.other_end.empty() &&
         std::all_of(place.other_end.begin(), place.other_end.end(),
                     [&](int32_t pid) { return IsARank(job, process.host, pid); });
}

// Its innermost function writes.
bool Writes(const StackPlace& place) {
  const absl::string_view functions = absl::StripLeadingAsciiWhitespace(place.functions);
  const absl::string_view innermost = functions.substr(0, functions.find(' '));
  return absl::StrContains(innermost, "send") || absl::StrContains(innermost, "write");
}

// It has asked somebody, and waits for the answer: a server, a child, a person.
bool HasAsked(const StackPlace& place) {
  for (const waits::Kind kind :
       {waits::kAnswer, waits::kChild, waits::kChildOfCode, waits::kTerminal}) {
    if (HasWait(place.functions, kind)) return true;
  }
  return absl::StrContains(place.functions, kPipeOfAChild);
}

// By the descriptor that it waits at, in whatever function: a pipe or a socket into which somebody
// outside of the job writes.
bool ReadsFromOutside(const StackPlace& place) {
  const bool is_known = place.end == EndKind::kPipe || place.end == EndKind::kSocket;
  return is_known && !Writes(place) && !HasAsked(place);
}

// A lock, a file or a child is not input.
bool MayWaitForInput(const Process& process, const StackPlace& place) {
  if (WaitsForInput(place)) return true;
  if (process.state == 'D') return false;
  return ReadsFromOutside(place) || (IsNamedInput(place) && !HasAsked(place));
}

// A call by which rank `from` hands work to others.
bool HandsOut(const CallArgs& call, int32_t from) {
  if (OpKind(call.op) == CallKind::kP2p) return IsSendSide(call.op);
  return RootGivesOnly(call.op) && call.peer == from;
}

int32_t RankOf(const JobState& job, const Communicator& comm, const Process& process) {
  for (const auto& [rank, member] : comm.members) {
    if (FindProcess(job, member.process) == &process) return rank;
  }
  return -1;
}

// How often the rank has handed out work by the communicator: by messages, or by collectives;
// nullopt if it has done something else there, too.
std::optional<size_t> CountHandedOut(const Member& member, int32_t rank, bool is_message) {
  const auto hands_out = [&](const CallRecord& record) { return HandsOut(record.args, rank); };
  if (!std::all_of(member.records.begin(), member.records.end(), hands_out)) return std::nullopt;
  size_t messages = is_message ? member.records.size() : 0;
  if (member.messages != nullptr) {
    for (const PeerMessages& peer : member.messages->by_peer) {
      if (peer.receives > 0 || peer.receives_awaited > 0) return std::nullopt;
      messages += peer.sends;
    }
  }
  return is_message ? messages : static_cast<size_t>(member.entered);
}

// Whether the rank brings the others work by this communicator, and nothing else goes over it: by
// all records, the rank has only handed out. Schedulers of inference engines have such a group
// beside the one on which the ranks work. One that has not handed out much yet must wait for
// another process, and so must one that hands out by messages, as the first stage of a pipeline
// does.
bool BringsRequests(const JobState& job, const Communicator& comm, const Verdict& verdict,
                    const Process& culprit, const StackPlace& place) {
  if (verdict.culprits.size() != 1 || IsFromRanks(job, culprit, place)) return false;
  if (culprit.motion == Motion::kSpinning || culprit.motion == Motion::kMoving) return false;
  const int32_t rank = RankOf(job, comm, culprit);
  const Member* member = FindMember(comm, rank);
  if (member == nullptr) return false;
  const bool is_message = OpKind(verdict.call.op) == CallKind::kP2p;
  if (is_message ? IsSendSide(verdict.call.op) : !HandsOut(verdict.call, rank)) return false;
  const std::optional<size_t> handed_out = CountHandedOut(*member, rank, is_message);
  if (!handed_out) return false;
  if (*handed_out < kLeastRequests) return WaitsForInput(place);
  return is_message ? WaitsForInput(place) || ReadsFromOutside(place)
                    : MayWaitForInput(culprit, place);
}

// The others agree with the server in all calls before this one: else that is the verdict. With
// some libraries of MPI, they do not get out of what it has handed out before it calls MPI again.
bool MayBeOfAServer(const Verdict& verdict) {
  return verdict.cause == Cause::kMissingRank || verdict.cause == Cause::kUnmatchedP2p ||
         (AreCulpritsElsewhere(verdict) && !IsAnyStopped(verdict.culprits));
}

}  // namespace

void WeighIdleServers(const JobState& job, Verdict* verdict) {
  if (!MayBeOfAServer(*verdict)) return;
  const auto comm = job.communicators.find(verdict->communicator);
  const bool is_key = verdict->communicator_kind == CommKind::kStore;
  if (verdict->culprits.empty() || (comm == job.communicators.end() && !is_key)) return;
  for (size_t i = 0; i < verdict->culprits.size(); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    const Process* process = FindProcess(job, culprit.process);
    if (process == nullptr || !culprit.ending.empty() || i >= verdict->places.size()) return;
    const StackPlace& place = verdict->places[i];
    if (IsIdle(*process, place)) continue;
    if (is_key || !BringsRequests(job, comm->second, *verdict, *process, place)) return;
  }
  verdict->is_idle = true;
  verdict->certainty = Certainty::kPossible;
  verdict->missing_evidence.push_back(
      "whether a request should be at work: the culprit waits for one");
}

}  // namespace rollcall
