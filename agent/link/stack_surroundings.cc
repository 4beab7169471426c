// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_surroundings.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "agent/outside/ancestors.h"
#include "agent/processes/payer.h"
#include "agent/processes/process_memory.h"
#include "agent/segments/printable.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr size_t kMostLookedAt = 16;  // threads of one process
constexpr size_t kMostWatchers = 16;  // further ones, of libraries
constexpr size_t kMostOthers = 2;
constexpr int64_t kLookForNs = kSecond;

using Threads = google::protobuf::RepeatedPtrField<v1::ThreadStack>;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / kSecond; }

// Returns true for the main thread and those of Python: those of libraries wait for descriptors all
// the time.
bool IsOfTheProgram(pid_t pid, const v1::ThreadStack& thread) {
  return thread.tid() == pid || std::any_of(thread.frames().begin(), thread.frames().end(),
                                            [](const v1::Frame& frame) { return frame.python(); });
}

bool IsWorthALook(pid_t pid, const v1::ThreadStack& thread) {
  if (thread.state() != "S" || absl::StrContains(thread.wait_channel(), "futex")) return false;
  return IsOfTheProgram(pid, thread);
}

// Returns true if the thread is a library's and waits for the sockets of others: ZeroMQ, gRPC.
bool WatchesSockets(pid_t pid, const v1::ThreadStack& thread) {
  const std::string& channel = thread.wait_channel();
  const bool is_epoll =
      absl::StrContains(channel, "epoll") || absl::StrContains(channel, "ep_poll");
  return thread.state() == "S" && is_epoll && !IsOfTheProgram(pid, thread);
}

void AddOtherEnd(const OtherEnd& end, v1::OtherEnd* other_end) {
  other_end->set_kind(end.kind);
  for (const pid_t pid : end.pids) other_end->add_pids(pid);
  for (const pid_t pid : end.called) other_end->add_called(pid);
  other_end->set_listens(end.listens);
  for (const std::string& name : end.names) {
    other_end->add_names(Printable(name.c_str(), name.size()));
  }
  double bytes = 0;
  for (const Received& received : end.received) {
    v1::SocketBytes* socket = other_end->add_sockets();
    socket->set_inode(received.inode);
    socket->set_received(static_cast<double>(received.bytes));
    bytes += socket->received();
  }
  other_end->set_received_bytes(bytes);
}

std::vector<pid_t> ThreadsWorthALook(pid_t pid, const Threads& threads) {
  std::vector<pid_t> tids;
  for (const v1::ThreadStack& thread : threads) {
    if (tids.size() < kMostLookedAt && IsWorthALook(pid, thread)) tids.push_back(thread.tid());
  }
  const size_t most = tids.size() + kMostWatchers;
  for (const v1::ThreadStack& thread : threads) {
    if (tids.size() < most && WatchesSockets(pid, thread)) tids.push_back(thread.tid());
  }
  return tids;
}

std::vector<pid_t> ThreadsInLocks(const Threads& threads) {
  std::vector<pid_t> tids;
  for (const v1::ThreadStack& thread : threads) {
    const std::string& channel = thread.wait_channel();
    const bool is_lock = absl::StrContains(channel, "lock") || absl::StrContains(channel, "setlk");
    if (is_lock && tids.size() < kMostLookedAt) tids.push_back(thread.tid());
  }
  return tids;
}

void AddLock(const FileLock& lock, v1::ProcessStack* stack) {
  constexpr int kAboveInodes = 32;
  v1::FileLock* added = stack->add_locks();
  added->set_inode(lock.device << kAboveInodes ^ lock.inode);  // files are compared by it
  added->set_path(Printable(lock.path.c_str(), lock.path.size()));
  added->set_holder(lock.holder);
  added->set_waits(lock.waits);
  added->set_child(lock.child);
  added->set_first(lock.bytes.first);
  if (lock.bytes.last != UINT64_MAX) added->set_last(lock.bytes.last);
}

Threads* ThreadsOf(pid_t pid, v1::ProcessStack* stack) {
  if (pid == stack->pid()) return stack->mutable_threads();
  for (auto* processes : {stack->mutable_children(), stack->mutable_others()}) {
    for (v1::ChildProcess& process : *processes) {
      if (process.pid() == pid) return process.mutable_threads();
    }
  }
  return nullptr;
}

void AddNew(const std::vector<pid_t>& added, std::vector<pid_t>* pids) {
  for (const pid_t pid : added) {
    if (std::find(pids->begin(), pids->end(), pid) == pids->end()) pids->push_back(pid);
  }
}

// What the neighbours have started, and what those have that have started the process, without
// those that are known already.
std::vector<pid_t> ListFurther(const std::string& proc_root, const OutsideQuestion& question,
                               std::vector<pid_t> known, int64_t deadline_ns) {
  const size_t before = known.size();
  const pid_t own = question.family.front();
  std::vector<pid_t> starters = question.neighbours;
  AddNew(FindAncestors(proc_root, own), &starters);
  for (const pid_t starter : starters) {
    if (MonotonicNs() > deadline_ns || known.size() - before > kMostLookedIn) break;
    if (starter == own) continue;
    std::vector<pid_t> started = ListDescendants(proc_root, starter);
    const auto is_of_another = [&](pid_t pid) { return !HaveSameUser(proc_root, own, pid); };
    started.erase(std::remove_if(started.begin(), started.end(), is_of_another), started.end());
    AddNew(started, &known);
  }
  return {known.begin() + static_cast<ptrdiff_t>(before), known.end()};
}

void AddThreads(pid_t pid, const Threads& threads, OutsideQuestion* question) {
  std::vector<pid_t> tids = ThreadsWorthALook(pid, threads);
  if (!tids.empty()) question->threads.emplace_back(pid, std::move(tids));
}

// Each costs a walk through the table of the host's locks.
void AddLocker(const v1::ChildProcess& child, OutsideQuestion* question) {
  constexpr size_t kMostLockingChildren = 4;
  if (question->locking_children.size() == kMostLockingChildren) return;
  std::vector<pid_t> tids = ThreadsInLocks(child.threads());
  if (!tids.empty()) question->locking_children.emplace_back(child.pid(), std::move(tids));
}

FileLocks FindLocks(const std::string& proc_root, const OutsideQuestion& question) {
  const int64_t deadline_ns = MonotonicNs() + kLookForNs;
  FileLocks found =
      FindFileLocks(proc_root, question.family.front(), question.lockers, deadline_ns);
  std::vector<FileLock> awaited;
  for (const auto& [child, tids] : question.locking_children) {
    FileLocks of_child = FindFileLocks(proc_root, child, tids, deadline_ns);
    found.cut = found.cut || of_child.cut;
    for (FileLock& lock : of_child.locks) {
      lock.child = child;
      if (lock.waits) awaited.push_back(std::move(lock));
    }
  }
  const auto held = std::find_if(found.locks.begin(), found.locks.end(),
                                 [](const FileLock& lock) { return !lock.waits; });
  found.locks.insert(held, std::make_move_iterator(awaited.begin()),
                     std::make_move_iterator(awaited.end()));
  if (found.locks.size() > kMostFileLocks) found.locks.resize(kMostFileLocks);
  return found;
}

}  // namespace

Starts StartsOf(const Descendants& found) {
  Starts starts;
  for (const Descendant& process : found.processes) starts[process.pid] = process.start_time;
  return starts;
}

void AddChildren(const Descendants& found, v1::ProcessStack* stack) {
  stack->set_ended_children_cpu_seconds(Seconds(found.ended_cpu_ns));
  for (const Descendant& child : found.processes) AddProcess(child, stack->add_children());
}

void AddProcess(const Descendant& process, v1::ChildProcess* added) {
  added->set_pid(process.pid);
  added->set_parent(process.parent);
  added->set_name(Printable(process.name.c_str(), process.name.size()));
  added->set_state(std::string(1, process.state));
  added->set_cpu_seconds(Seconds(process.cpu_ns));
  added->set_moved_bytes(static_cast<double>(process.moved_bytes));
  added->set_age_seconds(Seconds(process.age_ns));
  added->set_own_session(process.own_session);
}

std::vector<pid_t> ListOthers(const v1::ProcessStack& stack, const OutsideQuestion& question) {
  std::vector<pid_t> others;
  const auto is_among = [](const std::vector<pid_t>& pids, pid_t pid) {
    return std::find(pids.begin(), pids.end(), pid) != pids.end();
  };
  for (const v1::ThreadStack& thread : stack.threads()) {
    for (const pid_t pid : thread.other_end().pids()) {
      const bool is_known = is_among(question.family, pid) || is_among(question.neighbours, pid);
      if (is_known || is_among(others, pid) || others.size() == kMostOthers) continue;
      others.push_back(pid);
    }
  }
  return others;
}

OutsideQuestion AskOutside(const v1::ProcessStack& stack, const std::vector<pid_t>& neighbours,
                           const Starts& starts) {
  OutsideQuestion question;
  question.starts = starts;
  question.family.push_back(stack.pid());
  AddThreads(stack.pid(), stack.threads(), &question);
  for (const v1::ChildProcess& child : stack.children()) {
    AddThreads(child.pid(), child.threads(), &question);
    question.family.push_back(child.pid());
  }
  question.neighbours = neighbours;
  question.lockers = ThreadsInLocks(stack.threads());
  for (const v1::ChildProcess& child : stack.children()) AddLocker(child, &question);
  return question;
}

OutsideQuestion AskOutsideOfOthers(const v1::ProcessStack& stack, OutsideQuestion before,
                                   const Starts& starts) {
  before.starts.insert(starts.begin(), starts.end());
  before.threads.clear();
  before.lockers.clear();
  before.locking_children.clear();
  for (const v1::ChildProcess& other : stack.others()) {
    AddThreads(other.pid(), other.threads(), &before);
  }
  return before;
}

OutsideAnswer LookOutside(const std::string& proc_root, const OutsideQuestion& question) {
  std::deque<TracerMemory> traced;
  std::deque<ResidentMemory> memories;
  std::vector<WaitingThreads> waiting;
  for (const auto& [pid, tids] : question.threads) {
    memories.emplace_back(&traced.emplace_back(pid), proc_root, pid);
    waiting.push_back({pid, tids, &memories.back()});
  }
  const int64_t deadline_ns = MonotonicNs() + kLookForNs;
  Among among;
  AddNew(question.family, &among.first);
  if (!waiting.empty()) AddNew(FindAncestors(proc_root, question.family.front()), &among.first);
  AddNew(question.neighbours, &among.first);
  among.starts = question.starts;
  among.further = [&] { return ListFurther(proc_root, question, among.first, deadline_ns); };
  return {FindOtherEnds(proc_root, waiting, among, deadline_ns), FindLocks(proc_root, question)};
}

void AddOutside(const OutsideQuestion& question, const OutsideAnswer& answer,
                v1::ProcessStack* stack) {
  for (const FileLock& lock : answer.locks.locks) AddLock(lock, stack);
  for (size_t i = 0; i < question.threads.size(); ++i) {
    const auto& [pid, tids] = question.threads[i];
    Threads* const threads = ThreadsOf(pid, stack);
    if (threads == nullptr) continue;
    for (v1::ThreadStack& thread : *threads) {
      const auto at = std::find(tids.begin(), tids.end(), thread.tid());
      if (at == tids.end()) continue;
      const OtherEnd& end = answer.ends[i][at - tids.begin()];
      const bool watches = WatchesSockets(pid, thread);
      const bool is_known = watches || !end.pids.empty() || !end.received.empty();
      if (end.kind.empty() || !is_known) continue;
      AddOtherEnd(end, watches ? thread.mutable_watched() : thread.mutable_other_end());
    }
  }
}

}  // namespace rollcall
