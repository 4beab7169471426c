// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/poll_loops.h"

#include "interpose/record/blocked_threads.h"
#include "interpose/recorder.h"
#include "interpose/segment_messages.h"

namespace rollcall {
namespace {

constexpr int kMostTests = 4;  // different ones, in turn
constexpr int kMostMarked = 16;
// In ticks, some tens of microseconds: in a longer one the thread has lost its CPU.
constexpr uint64_t kLongTest = 1 << 17;

// The loop of the thread that has this entry among the blocked threads.
struct Loop {
  const void* tests[kMostTests] = {};
  int test_count = 0;
  IssuedMessage marked[kMostMarked];
  int marked_count = 0;
};
Loop loops[segment::kBlockedCapacity];

Loop* LoopOf(const ThreadState* thread) { return &loops[thread->blocked - recorder.blocked]; }

bool IsKnown(const Loop& loop, const void* what) {
  for (int i = 0; i < loop.test_count; ++i) {
    if (loop.tests[i] == what) return true;
  }
  return false;
}

void Mark(Loop* loop, const IssuedMessage* messages, int count) {
  for (int i = 0; i < count && loop->marked_count < kMostMarked; ++i) {
    AwaitMessage(messages[i]);
    loop->marked[loop->marked_count++] = messages[i];
  }
}

void EndMarks(Loop* loop) {
  for (int i = 0; i < loop->marked_count; ++i) EndAwait(loop->marked[i]);
  loop->marked_count = loop->test_count = 0;
}

void Add(segment::Word* word, uint64_t value) {
  word->store(word->load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

}  // namespace

void NotePoll(ThreadState* thread, const FailedTest& test, const LocalComm* comm, uint64_t number,
              const IssuedMessage* messages, int count) {
  segment::BlockedEntry* entry = thread->blocked;
  if (entry == nullptr || comm == nullptr) return;
  Loop* loop = LoopOf(thread);
  segment::Word* polls = &entry->reserved_words[segment::kPollsWord];
  segment::Word* ticks = &entry->reserved_words[segment::kPollTicksWord];
  // Another call to another library has used the entry meanwhile.
  if (thread->polls && entry->since.load(std::memory_order_relaxed) == 0) EndPolls(thread);
  if (!thread->polls) {
    EndMarks(loop);  // of a thread that has ended
    thread->polls = true;
    polls->store(0, std::memory_order_relaxed);
    ticks->store(0, std::memory_order_relaxed);
    entry->op.store(static_cast<uint32_t>(test.op), std::memory_order_relaxed);
    entry->comm.store(comm->index, std::memory_order_relaxed);
    entry->stream.store(number, std::memory_order_relaxed);
    entry->since.store(test.began, std::memory_order_release);
  }
  // The entry names one communicator.
  if (entry->comm.load(std::memory_order_relaxed) != comm->index) return EndPolls(thread);
  if (!IsKnown(*loop, test.what)) {
    if (loop->test_count == kMostTests) return EndPolls(thread);
    loop->tests[loop->test_count++] = test.what;
    Mark(loop, messages, count);
    // Of several tests of MPI any one may end the loop.
    const auto kind = ToCommKind(comm->entry->kind.load(std::memory_order_relaxed));
    const bool is_mpi = kind == CommKind::kNccl;
    if (loop->test_count > 1 && is_mpi) {
      entry->op.store(static_cast<uint32_t>(Op::kMPI_Testany), std::memory_order_relaxed);
    }
  }
  const uint64_t spent = Now() - test.began;
  if (spent < kLongTest) Add(ticks, spent);
  Add(polls, 1);
}

void EndPolls(ThreadState* thread) {
  if (!thread->polls) return;
  thread->polls = false;
  EndMarks(LoopOf(thread));
  thread->blocked->since.store(0, std::memory_order_release);
}

}  // namespace rollcall
