// SPDX-License-Identifier: Apache-2.0
// The wrappers of sends and receives of PyTorch's gloo groups. A method posts a message and
// returns; gloo moves the data when the other end is posted, too.
//
// Messages that are posted while earlier ones are open go on side by side, so they count as a
// group. Receives from any rank, and messages with a tag, have no records: there the nth send to a
// rank need not match the nth receive from it. They are counted for each rank and tag.
#include "interpose/calls/gloo_messages.h"
#include "interpose/calls/torch_objects.h"
#include "interpose/keep_cancel.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/handle_table.h"

namespace rollcall {
namespace {

// The message that a thread is posting.
struct Posting : OpenCall {
  LocalComm* comm;
  OpenRecord open;
  int message;
};
Posting* OwnPosting() { return OpenCallRoom<Posting>(); }

// gloo refused the message.
void RevertPosting(OpenCall* open) {
  auto* posting = static_cast<Posting*>(open);
  posting->open.record->result.store(ncclInvalidArgument, std::memory_order_relaxed);
  posting->open.record->returned.store(Now(), std::memory_order_release);
  RevertPosition(posting->comm, posting->open);
  FinishMessage(posting->message);
  RaiseMessagesReturned(posting->comm);
}

void BeginPosting(ThreadState* thread, LocalComm* comm, const CallInfo& info, const void* caller,
                  uint64_t now, Posting* posting) {
  if (!HasOpenMessage(comm) && ++thread->group_number == 0) ++thread->group_number;
  posting->thrown = &RevertPosting;
  posting->comm = comm;
  posting->message = AddMessage(comm, info.op, Get(comm->entry->p2p_entered));
  posting->open = BeginRecord(thread, comm, info, now, caller, true);
}

void EndPosting(const Posting& posting, const void* work) {
  SetMessageWork(posting.message, work);
  posting.open.record->result.store(ncclSuccess, std::memory_order_relaxed);
  posting.open.record->returned.store(Now(), std::memory_order_release);
  RaiseMessagesReturned(posting.comm);
}

using Post = TorchWork (*)(void* group, void* tensors, int peer, int tag);

__attribute__((noinline, noclone)) TorchWork RecordPost(Post real, LocalComm* comm,
                                                        const CallInfo& info, const void* caller,
                                                        void* group, void* tensors, int tag) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const uint64_t now = Now();
  BeginPosting(thread, comm, info, caller, now, OwnPosting());
  const Blocked blocked(thread, info.op, comm, nullptr, now);
  const MayThrow may_throw(OwnPosting());
  TorchWork work = real(group, tensors, info.peer, tag);
  if (may_throw.IsOpen()) EndPosting(*OwnPosting(), work.work);
  return work;
}

// A message with a tag, or a receive from any rank, that a thread is posting.
struct CountedPosting : OpenCall {
  int message;
};

// gloo refused the message: it counts nevertheless.
void CancelPosting(OpenCall* open) { CancelMessage(static_cast<CountedPosting*>(open)->message); }

template <typename Function>
__attribute__((noinline, noclone)) TorchWork CountPost(Function post, LocalComm* comm, Op op,
                                                       int32_t peer, int32_t tag) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const InsideCall inside(&this_thread);
  const MessageEnd end = op == Op::kSend ? MessageEnd::kSend : MessageEnd::kReceive;
  const IssuedMessage counted = CountMessage(comm, end, peer, tag);
  auto* posting = OpenCallRoom<CountedPosting>();
  posting->thrown = &CancelPosting;
  posting->message = AddCountedMessage(comm, op, counted, tag);
  if (posting->message < 0 && counted.is_open_choice) {
    NoteCancelled(comm);  // no code will see which rank's message it got
    EndChoice(counted);
  }
  const MayThrow may_throw(posting);
  TorchWork work = post();
  if (may_throw.IsOpen()) SetMessageWork(posting->message, work.work);
  return work;
}

__attribute__((always_inline)) inline LocalComm* CommToRecord(void* group) {
  return IsInsideCall() || !Recording() ? nullptr : FindComm(group);
}

__attribute__((always_inline)) inline TorchWork ObservePost(Post real, Op op, const void* caller,
                                                            void* group, void* tensors, int peer,
                                                            int tag) {
  LocalComm* comm = CommToRecord(group);
  const bool is_refused = peer < 0 || tag < 0;
  if (comm == nullptr || is_refused) return real(group, tensors, peer, tag);
  if (tag != 0) {
    return CountPost([&] { return real(group, tensors, peer, tag); }, comm, op, peer, tag);
  }
  const TensorFacts facts = InVector(tensors);
  const CallInfo info = {op, facts.dtype, kNoReduction, peer, facts.count, nullptr};
  return RecordPost(real, comm, info, caller, group, tensors, tag);
}

// A message that a thread waits for.
struct AwaitedMessage : OpenCall {
  const void* work;
};

// The time-out of a wait ends the message.
void EndThrownWait(OpenCall* open) {
  CancelMessage(FindMessage(static_cast<AwaitedMessage*>(open)->work));
}

using SourceRank = int (*)(const void* work);
std::atomic<SourceRank> source_rank{nullptr};

// Calls the loader: for the first receive from any rank.
void FindSourceRank() {
  if (source_rank.load(std::memory_order_relaxed) != nullptr) return;
  const KeepCancel keep_cancel;
  const auto found = reinterpret_cast<SourceRank>(
      FindRealByName("_ZNK4c10d16ProcessGroupGloo8RecvWork10sourceRankEv"));
  source_rank.store(found, std::memory_order_relaxed);
}

// The rank whose message a receive from any rank has got.
void NoteSource(int message, const void* work) {
  const SourceRank find = source_rank.load(std::memory_order_relaxed);
  if (message >= 0 && find != nullptr) SetMessageSource(message, find(work));
}

using Wait = bool (*)(void* work, int64_t timeout);

__attribute__((noinline, noclone)) bool RecordMessageWait(Wait real, int message, void* work,
                                                          int64_t timeout) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const Message awaited = GetMessage(message);
  const Blocked blocked(thread, awaited.op, awaited.comm, nullptr, Now());
  SetMessageAwaited(message);
  auto* open = OpenCallRoom<AwaitedMessage>();
  open->thrown = &EndThrownWait;
  open->work = work;
  const MayThrow may_throw(open);
  const bool result = real(work, timeout);
  if (awaited.is_open_choice) NoteSource(FindMessage(work), work);
  FinishMessage(FindMessage(work));
  return result;
}

__attribute__((always_inline)) inline bool ObserveMessageWait(Wait real, void* work,
                                                              int64_t timeout) {
  const int message = IsInsideCall() || !Recording() ? -1 : FindMessage(work);
  return message < 0 ? real(work, timeout) : RecordMessageWait(real, message, work, timeout);
}

using PostAnySource = TorchWork (*)(void* group, void* tensors, int tag);

TorchWork ObserveAnySource(PostAnySource real, void* group, void* tensors, int tag) {
  LocalComm* comm = CommToRecord(group);
  if (comm == nullptr || tag < 0) return real(group, tensors, tag);
  FindSourceRank();
  return CountPost([&] { return real(group, tensors, tag); }, comm, Op::kRecv, segment::kAnySource,
                   tag);
}

}  // namespace
}  // namespace rollcall

using rollcall::ObserveAnySource;
using rollcall::ObserveMessageWait;
using rollcall::ObservePost;
using rollcall::Op;

#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT TorchWork _ZN4c10d16ProcessGroupGloo4sendERSt6vectorIN2at6TensorESaIS3_EEii(void* group,
                                                                                   void* tensors,
                                                                                   int peer,
                                                                                   int tag) {
  return ObservePost(
      ROLLCALL_REAL(_ZN4c10d16ProcessGroupGloo4sendERSt6vectorIN2at6TensorESaIS3_EEii), Op::kSend,
      __builtin_return_address(0), group, tensors, peer, tag);
}

EXPORT TorchWork _ZN4c10d16ProcessGroupGloo4recvERSt6vectorIN2at6TensorESaIS3_EEii(void* group,
                                                                                   void* tensors,
                                                                                   int peer,
                                                                                   int tag) {
  return ObservePost(
      ROLLCALL_REAL(_ZN4c10d16ProcessGroupGloo4recvERSt6vectorIN2at6TensorESaIS3_EEii), Op::kRecv,
      __builtin_return_address(0), group, tensors, peer, tag);
}

EXPORT TorchWork _ZN4c10d16ProcessGroupGloo13recvAnysourceERSt6vectorIN2at6TensorESaIS3_EEi(
    void* group, void* tensors, int tag) {
  return ObserveAnySource(
      ROLLCALL_REAL(_ZN4c10d16ProcessGroupGloo13recvAnysourceERSt6vectorIN2at6TensorESaIS3_EEi),
      group, tensors, tag);
}

EXPORT bool _ZN4c10d16ProcessGroupGloo8SendWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* work, int64_t timeout) {
  return ObserveMessageWait(
      ROLLCALL_REAL(
          _ZN4c10d16ProcessGroupGloo8SendWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE),
      work, timeout);
}

EXPORT bool _ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* work, int64_t timeout) {
  return ObserveMessageWait(
      ROLLCALL_REAL(
          _ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE),
      work, timeout);
}
