// SPDX-License-Identifier: Apache-2.0
// StandstillAdvice(): for jobs that stand still outside of recorded calls, by what they wait in.
#include <algorithm>
#include <initializer_list>

#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/advice_patterns.h"

namespace rollcall {
namespace {

bool IsIn(const Verdict& v, std::initializer_list<StandKind> kinds) {
  if (!Is(v, Cause::kStandstill)) return false;
  return std::find(kinds.begin(), kinds.end(), v.standstill.in) != kinds.end();
}

bool HasShape(const Verdict& v, StandShape shape) {
  return Is(v, Cause::kStandstill) && v.standstill.shape == shape;
}

bool PutsIntoAFullQueue(const Verdict& v) {
  return Is(v, Cause::kStandstill) && v.standstill.writes;
}

bool TakesTwoLocks(const Verdict& v) {
  if (!Is(v, Cause::kStandstill)) return false;
  const bool is_ring =
      HasShape(v, StandShape::kRing) && IsIn(v, {StandKind::kFileLock, StandKind::kLock,
                                                 StandKind::kSemaphore, StandKind::kProcessLock});
  return is_ring || v.standstill.two_locks;
}

bool WaitsForALock(const Verdict& v) {
  const bool shares_a_lock = CulpritIsIn(v, {"SemLock.__enter__"}) && !CulpritIsIn(v, {"Queue."});
  return (IsAbsence(v) && shares_a_lock) ||
         IsIn(v, {StandKind::kLock, StandKind::kSemaphore, StandKind::kProcessLock}) ||
         (Is(v, Cause::kStandstill) && !v.culprits.empty() &&
          (v.standstill.others_in == StandKind::kLock ||
           v.standstill.others_in == StandKind::kSemaphore ||
           v.standstill.others_in == StandKind::kMpiWindow));
}

bool WaitsForAWakeUp(const Verdict& v) {
  return IsIn(v, {StandKind::kProcessCondition, StandKind::kCondition, StandKind::kSignal});
}

bool LacksAParty(const Verdict& v) {
  return HasShape(v, StandShape::kHub) || IsIn(v, {StandKind::kBarrier, StandKind::kJaxBarrier});
}

bool WaitsForItsWorld(const Verdict& v) { return IsIn(v, {StandKind::kJaxStart}); }

// gloo cancels the transfer of a request that the program has not kept.
bool LostTheRequest(const Verdict& v) {
  return v.communicator_kind == CommKind::kGloo && OpKind(v.call.op) == CallKind::kP2p &&
         AreCulpritsElsewhere(v) && !IsAnyStopped(v.culprits);
}

bool WaitsForAMessage(const Verdict& v) {
  return LostTheRequest(v) || IsIn(v, {StandKind::kRing, StandKind::kZeroMq,
                                       StandKind::kMessageQueue, StandKind::kRayChannel});
}

bool WaitsForAnAnswer(const Verdict& v) {
  return HasShape(v, StandShape::kOutside) ||
         IsIn(v, {StandKind::kSocket, StandKind::kPipe, StandKind::kGrpc, StandKind::kRay,
                  StandKind::kManager, StandKind::kProcessQueue});
}

bool WaitsInAnotherCollective(const Verdict& v) {
  return IsIn(v, {StandKind::kJax, StandKind::kGloo, StandKind::kTorch, StandKind::kMpi});
}

}  // namespace

const std::vector<AdviceEntry>& StandstillAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"queue-is-full", PutsIntoAFullQueue, "the culprit puts into a queue or a pipe",
       "A queue or a pipe has limited room. Its writer waits until a reader takes from it.",
       "The queue or pipe is full, and no reader takes from it. Find out what its reader does "
       "instead. Do not fill a queue from the thread that empties it, and do not join a process "
       "before its output is read."},
      {"lock-order", TakesTwoLocks, "two hold a lock each and wait for the other's",
       "Two locks that are taken in two orders end in a deadlock as soon as both are taken at once.",
       "Two sides hold a lock each and wait for the other one. Take the locks in one order "
       "everywhere, or let one lock guard both."},
      {"held-lock", WaitsForALock,
       "the culprit, or those that wait, wait for a lock or a semaphore of several processes or threads",
       "A lock whose owner has died, waits itself or never gives it back holds up all others.",
       "Somebody holds a lock or a semaphore and does not give it back. Look for its owner: a "
       "process that was killed while it held it, a thread that waits for something else, a path "
       "without a release. Hold no lock while you wait for others."},
      {"lost-wake-up", WaitsForAWakeUp, "the culprit waits for a condition or a signal",
       "A notification or a signal that comes before somebody waits for it is lost.",
       "It waits for a notification or a signal that came too early or never. Check the state "
       "under the lock before each wait (wait_for()), and use sigwait() with the signal blocked."},
      {"lacking-party", LacksAParty, "ranks wait at a barrier, or one waits until all have come",
       "A barrier opens when as many have come as it counts.",
       "Fewer have come than it counts. Compare the number that it expects with those that take "
       "part, and look for a rank that has left one out or waits at another one."},
      {"count-the-processes", WaitsForItsWorld, "the ranks wait in jax.distributed.initialize()",
       "The coordination service starts when the configured number of processes has connected.",
       "A process has not come to jax.distributed.initialize(). Check that all were started, and "
       "that num_processes and the address are the same for all."},
      {"lost-message", WaitsForAMessage,
       "the culprit waits for a message, or has issued a message and does not wait for it",
       "A message that was dropped, was sent to somebody else, or was never sent leaves its receiver "
       "waiting for ever.",
       "It waits for a message that does not come. Compare what was sent with what was taken, by "
       "number: a reader that is one ahead, a request that was dropped, a step that was not "
       "broadcast. Keep the request of each isend() and irecv(), and wait for it."},
      {"ask-the-other-end", WaitsForAnAnswer, "the culprit waits at a pipe, a socket or in a call",
       "The reason is where the answer should come from.",
       "It waits for an answer. Look at the process at the other end: its stack shows what it does "
       "instead. Give the wait a time-out, so that the program reports what it lacks."},
      {"collective-outside", WaitsInAnotherCollective,
       "the culprit is in a collective whose calls are not recorded",
       "All ranks must make the same calls of a library in the same order.",
       "The ranks are in different calls of a library whose calls are not recorded. Compare their "
       "lines: one of them has left a call out or has made one more."},
  };
  return *kTable;
}

}  // namespace rollcall
