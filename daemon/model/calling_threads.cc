// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/calling_threads.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

// A thread that begins to make calls when another one has stopped has taken the communicator over
// if it has made this many since.
constexpr size_t kTakenOver = 8;

// Threads for whose calls another thread of the process waits, by the beginnings of their names.
constexpr absl::string_view kAwaitedThreads[] = {
    // PyTorch's backward pass: the caller of backward() waits for it. In older releases its stack
    // shows it (Process::awaited_tids).
    "pt_autograd",
};

bool IsAwaited(absl::string_view name) {
  return std::any_of(std::begin(kAwaitedThreads), std::end(kAwaitedThreads),
                     [name](absl::string_view known) { return absl::StartsWith(name, known); });
}

const CallingThread* FindCaller(const Process& process, uint32_t thread) {
  for (const CallingThread& caller : process.callers) {
    if (caller.thread == thread) return &caller;
  }
  return nullptr;
}

bool StandsInACall(const BlockedCall& blocked) {
  return OpKind(blocked.op) != CallKind::kLocal && blocked.thread != 0;
}

bool IsOfMain(const Process& process, const BlockedCall& blocked) {
  return static_cast<int32_t>(blocked.thread) == process.pid;
}

bool IsAwaitedThread(const Process& process, uint32_t thread) {
  const CallingThread* caller = FindCaller(process, thread);
  if (caller == nullptr) return false;
  const std::vector<uint32_t>& tids = process.awaited_tids;
  return IsAwaited(caller->name) || std::find(tids.begin(), tids.end(), caller->tid) != tids.end();
}

// The thread that waits for the awaited ones: the main thread, or the only other one that makes
// calls; 0 if unknown.
uint32_t WaitingThread(const Process& process) {
  uint32_t other = 0;
  size_t others = 0;
  for (const CallingThread& caller : process.callers) {
    if (caller.tid == static_cast<uint32_t>(process.pid)) return caller.thread;
    if (IsAwaitedThread(process, caller.thread)) continue;
    other = caller.thread;
    ++others;
  }
  return others == 1 ? other : 0;
}

void AddOnce(uint32_t tid, std::vector<uint32_t>* tids) {
  if (tid != 0 && std::find(tids->begin(), tids->end(), tid) == tids->end()) tids->push_back(tid);
}

template <typename Predicate>
std::vector<uint32_t> TidsInside(const Process& process, Predicate is_meant) {
  std::vector<const BlockedCall*> inside;
  for (const BlockedCall& blocked : process.blocked) {
    const bool stands = StandsInACall(blocked) && !WaitsBeside(process, blocked);
    if (stands && is_meant(blocked)) inside.push_back(&blocked);
  }
  std::stable_sort(inside.begin(), inside.end(), [](const BlockedCall* a, const BlockedCall* b) {
    return a->since_ns < b->since_ns;
  });
  std::vector<uint32_t> tids;
  for (const BlockedCall* blocked : inside) AddOnce(blocked->thread, &tids);
  return tids;
}

// The records of one thread: its first and its newest one.
struct Span {
  RacingThread who;
  size_t first = 0;
};

std::vector<Span> FindSpans(const Process* process, const Member& member) {
  std::vector<Span> spans;
  for (size_t i = 0; i < member.records.size(); ++i) {
    const CallRecord& record = member.records[i];
    // A launched graph has the thread of the launch, and a captured call has not happened.
    if (record.thread == 0 || !Happens(record)) continue;
    auto span = std::find_if(spans.begin(), spans.end(),
                             [&](const Span& s) { return s.who.thread == record.thread; });
    if (span == spans.end()) {
      const CallingThread* caller =
          process == nullptr ? nullptr : FindCaller(*process, record.thread);
      spans.push_back({{record.thread, caller == nullptr ? "" : caller->name, i}, i});
      span = std::prev(spans.end());
    }
    span->who.newest = i;
  }
  return spans;
}

bool HasTakenOver(const Member& member, const Span& before, const Span& after) {
  return before.who.newest < after.first && member.records.size() - after.first >= kTakenOver;
}

}  // namespace

bool WaitsBeside(const Process& process, const BlockedCall& blocked) {
  return blocked.op == Op::kstore_wait && static_cast<int32_t>(blocked.thread) != process.pid;
}

MessageThreads FindMessageThreads(const Process& process, uint64_t communicator) {
  MessageThreads threads;
  for (const BlockedCall& blocked : process.blocked) {
    const bool is_other = OpKind(blocked.op) == CallKind::kCollective;
    if (blocked.communicator != communicator || is_other) continue;
    const bool is_main = blocked.thread == 0 || IsOfMain(process, blocked);
    (is_main ? threads.is_main : threads.is_beside) = true;
    if (is_main) threads.main_since_ns = blocked.since_ns;
  }
  return threads;
}

bool IsMainInside(const Process& process) {
  return std::any_of(process.blocked.begin(), process.blocked.end(), [&](const BlockedCall& b) {
    return StandsInACall(b) && IsOfMain(process, b);
  });
}

std::vector<uint32_t> CallingTids(const Process& process) {
  std::vector<uint32_t> tids = TidsInside(process, [](const BlockedCall&) { return true; });
  const auto pid = static_cast<uint32_t>(process.pid);
  const bool main_calls = std::any_of(process.callers.begin(), process.callers.end(),
                                      [pid](const CallingThread& c) { return c.tid == pid; });
  if (main_calls) return tids;
  for (auto caller = process.callers.rbegin(); caller != process.callers.rend(); ++caller) {
    AddOnce(caller->tid, &tids);
  }
  return tids;
}

std::vector<uint32_t> CallingTids(const Process& process, const Communicator& comm, int32_t rank) {
  std::vector<uint32_t> tids = TidsInside(process, [&](const BlockedCall& blocked) {
    return blocked.communicator == comm.id &&
           (rank == kAnyRank || blocked.rank < 0 || blocked.rank == rank);
  });
  const auto member = comm.members.find(rank);
  if (member == comm.members.end() || member->second.records.empty()) return tids;
  const CallingThread* caller = FindCaller(process, member->second.records.back().thread);
  if (caller != nullptr) AddOnce(caller->tid, &tids);
  return tids;
}

bool MayRace(const JobState& job, int32_t process, uint32_t a, uint32_t b) {
  if (a == b || a == 0 || b == 0) return false;
  const Process* known = FindProcess(job, process);
  if (known == nullptr) return true;
  const bool a_is_awaited = IsAwaitedThread(*known, a);
  const bool b_is_awaited = IsAwaitedThread(*known, b);
  if (a_is_awaited && b_is_awaited) return false;
  if (!a_is_awaited && !b_is_awaited) return true;
  return (a_is_awaited ? b : a) != WaitingThread(*known);
}

std::vector<RacingThread> FindRacingThreads(const JobState& job, const Member& member) {
  const std::vector<Span> spans = FindSpans(FindProcess(job, member.process), member);
  std::vector<RacingThread> racing;
  for (const Span& span : spans) {
    const bool races = std::any_of(spans.begin(), spans.end(), [&](const Span& other) {
      return MayRace(job, member.process, span.who.thread, other.who.thread) &&
             !HasTakenOver(member, span, other) && !HasTakenOver(member, other, span);
    });
    if (races) racing.push_back(span.who);
  }
  return racing;
}

}  // namespace rollcall
