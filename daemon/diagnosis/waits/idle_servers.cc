// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/idle_servers.h"

#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/model/progress.h"
#include "daemon/model/waits/idle_loops.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/rules/stuck_call.h"

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

// A lock, a file or a child is no input.
bool MayWaitForInput(const Process& process, const StackPlace& place) {
  if (WaitsForInput(place)) return true;
  if (process.state == 'D') return false;
  const auto& inputs = WaitFramesOf(waits::kLoopInput);
  return std::any_of(inputs.begin(), inputs.end(), [&](const WaitFrame& input) {
    absl::string_view name = place.inside;
    return absl::ConsumeSuffix(&name, input.name) && (name.empty() || name.back() == '.');
  });
}

// A call by which rank `from` hands work to others.
bool HandsOut(const CallArgs& call, int32_t from) {
  if (OpKind(call.op) == CallKind::kP2p) return IsSendSide(call.op);
  return (call.op == Op::kBroadcast || call.op == Op::kScatter) && call.peer == from;
}

int32_t RankOf(const JobState& job, const Communicator& comm, const Process& process) {
  for (const auto& [rank, member] : comm.members) {
    if (FindProcess(job, member.process) == &process) return rank;
  }
  return -1;
}

// Whether the rank brings the others work by this communicator, and nothing else goes over it: by
// all records, the rank has only handed out. Schedulers of inference engines have such a group of
// gloo beside the one on which the ranks work. One that has not handed out much yet, or hands out
// by messages, as the first stage of a pipeline does, must wait for another process.
bool BringsRequests(const JobState& job, const Communicator& comm, const Verdict& verdict,
                    const Process& culprit, const StackPlace& place) {
  if (comm.kind != CommKind::kGloo || verdict.culprits.size() != 1) return false;
  if (culprit.motion == Motion::kSpinning || culprit.motion == Motion::kMoving) return false;
  const int32_t rank = RankOf(job, comm, culprit);
  const Member* member = FindMember(comm, rank);
  if (member == nullptr) return false;
  const bool is_message = OpKind(verdict.call.op) == CallKind::kP2p;
  if (is_message ? IsSendSide(verdict.call.op) : !HandsOut(verdict.call, rank)) return false;
  const auto hands_out = [&](const CallRecord& record) { return HandsOut(record.args, rank); };
  if (!std::all_of(member->records.begin(), member->records.end(), hands_out)) return false;
  const bool is_known = !is_message && member->entered >= kLeastRequests;
  return is_known ? MayWaitForInput(culprit, place) : WaitsForInput(place);
}

}  // namespace

void WeighIdleServers(const JobState& job, Verdict* verdict) {
  // The others agree with the server in all calls before this one: else that is the verdict.
  if (verdict->cause != Cause::kMissingRank && verdict->cause != Cause::kUnmatchedP2p) return;
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
