// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/standing_sample.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/stand_kinds.h"
#include "daemon/model/waits/idle_loops.h"
#include "daemon/model/waits/poll_rate.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/report/program_line.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

// A trace: loops that ask again and again and heartbeats go on for ever.
constexpr double kMostCpus = 0.01;
constexpr double kMostCpusOfAPoll = 0.03;  // where a library asks some hundred times a second
constexpr double kMostCpusOfAWait = 1.05;  // of a library that never sleeps
constexpr double kMostCpusOfASpin = 1000;  // threads of NCCL and MPI spin beside the main one
constexpr double kMostBytesASecond = 2048;
// A library wakes its own threads by a few bytes. A message of a queue has more.
constexpr double kFewBytes = 32, kFewBytesASecond = 1;

// A sample wakes the threads that it stops. The agent leaves that out, but may miss one on a host
// without a free CPU, and does not see the samples of others.
constexpr double kFewWakes = 1;

constexpr size_t kMostChildren = 64;  // few of them with threads
constexpr size_t kMostLocks = 8;
constexpr size_t kMostMarkedThreads = 64;  // of all processes of the sample
constexpr size_t kMostOtherNames = 64;
constexpr size_t kMostLinked = 64;          // processes
constexpr size_t kMostPlaces = 3;           // of a child
constexpr size_t kLongestFunctions = 4096;  // of a thread, in bytes

using Threads = google::protobuf::RepeatedPtrField<v1::ThreadStack>;

// By the program's own frames, if there are some: in a loop that polls, those of libraries below
// them change all the time.
uint64_t PositionOf(const v1::ThreadStack& thread) {
  const auto& all = thread.frames();
  auto from = std::find_if(all.begin(), all.end(),
                           [](const v1::Frame& frame) { return !IsLibraryFrame(frame); });
  if (from == all.end()) from = all.begin();
  std::string frames;
  for (; from != all.end(); ++from) {
    absl::StrAppend(&frames, from->function(), ":", from->line(), "\n");
  }
  return absl::HashOf(frames);
}

void AddThreads(int32_t pid, const Threads& threads, StandingMarks* marks) {
  for (const v1::ThreadStack& thread : threads) {
    const bool is_main = thread.tid() == pid;
    if (thread.frames().empty() && marks->unseen.size() < kMostMarkedThreads)
      marks->unseen.insert({pid, thread.tid()});
    if (thread.frames().empty() || (!is_main && !RunsTheProgram(thread))) continue;
    if (!is_main && marks->threads.size() >= kMostMarkedThreads) continue;
    // A thread that waits for Python's lock looks every 5 ms whether it is free.
    const bool looks = thread.python_lock() == "waits";
    marks->threads[{pid, thread.tid()}] = {PositionOf(thread), looks ? 0 : thread.switches()};
  }
}

StandingMarks MarksOf(const v1::ProcessStack& stack, int64_t now_ns) {
  StandingMarks marks;
  marks.at_ns = now_ns;
  marks.cpu_seconds = stack.cpu_seconds();
  marks.children_cpu_seconds = stack.ended_children_cpu_seconds();
  marks.moved_bytes = stack.has_moved_bytes() ? stack.moved_bytes() : -1;
  AddThreads(stack.pid(), stack.threads(), &marks);
  for (const v1::ChildProcess& child : stack.children()) {
    marks.children_cpu_seconds += child.cpu_seconds();
    if (marks.moved_bytes >= 0) marks.moved_bytes += child.moved_bytes();
    AddThreads(child.pid(), child.threads(), &marks);
  }
  for (const v1::ChildProcess& other : stack.others()) {
    marks.others_cpu_seconds[other.pid()] = other.cpu_seconds();
    AddThreads(other.pid(), other.threads(), &marks);
  }
  return marks;
}

// Whether a thread of one sample is at another place in the other, or in none. One without frames
// there may be anywhere.
bool AreElsewhere(const StandingMarks& one, const StandingMarks& other) {
  return std::any_of(one.threads.begin(), one.threads.end(), [&other](const auto& thread) {
    const auto there = other.threads.find(thread.first);
    if (there == other.threads.end()) return other.unseen.count(thread.first) == 0;
    return there->second.position != thread.second.position;
  });
}

// The next sample is compared with where they were seen last.
void KeepUnseenThreads(const StandingMarks& before, StandingMarks* marks) {
  for (const auto& id : marks->unseen) {
    const auto known = before.threads.find(id);
    if (known != before.threads.end()) marks->threads.insert(*known);
  }
}

bool HasMoved(const StandingMarks& before, const StandingMarks& after, double most_cpus) {
  const double seconds = static_cast<double>(after.at_ns - before.at_ns) / kSecond;
  if (after.cpu_seconds - before.cpu_seconds > most_cpus * seconds) return true;
  // No child is part of the library in which the process spins.
  const double children = after.children_cpu_seconds - before.children_cpu_seconds;
  if (children > std::min(most_cpus, kMostCpusOfAPoll) * seconds) return true;
  // What others do is work, too, as long as the process waits for them.
  for (const auto& [pid, cpu_seconds] : after.others_cpu_seconds) {
    const auto known = before.others_cpu_seconds.find(pid);
    if (known == before.others_cpu_seconds.end()) continue;
    if (cpu_seconds - known->second > most_cpus * seconds) return true;
  }
  const bool knows_bytes = before.moved_bytes >= 0 && after.moved_bytes >= 0;
  if (knows_bytes && after.moved_bytes - before.moved_bytes > kMostBytesASecond * seconds) {
    return true;
  }
  return AreElsewhere(before, after) || AreElsewhere(after, before);
}

bool MaySpin(const Standing& standing) {
  const StandKind kind = standing.place.in.kind;
  return HasTrait(kind, stands::kSpins) || HasTrait(kind, stands::kMaySpin);
}

// Applies to a thread that waits in no library that spins.
double MostCpusAsleep(const Standing& standing) {
  return HasTrait(standing.place.in.kind, stands::kPolls) ? kMostCpusOfAPoll : kMostCpus;
}

double MostCpus(const Standing& standing) {
  return WaitsWithTheCpu(standing) ? kMostCpusOfAWait : MostCpusAsleep(standing);
}

// Each sample of one process wakes the others that wait for the same lock: the kernel lets them try
// again.
bool WaitsForAFileLock(const Standing& standing) {
  return WaitOfMain(standing).kind == StandKind::kFileLock;
}

// Libraries that wait for what comes by a pipe or a message look every now and then whether its
// sender lives. What comes by a pipe is counted as bytes.
bool AsksItself(const v1::ThreadStack& thread) {
  return HasTrait(StandsIn(PlaceOfThread(thread)).kind, stands::kAsks);
}

using ThreadIds = std::set<std::pair<int32_t, int32_t>>;  // pid, tid

ThreadIds ListAsking(const v1::ProcessStack& stack, const Standing& standing) {
  ThreadIds asking;
  const StandingMarks &first = standing.first, &newest = standing.newest;
  const double seconds = static_cast<double>(newest.at_ns - first.at_ns) / kSecond;
  const bool is_quiet = first.moved_bytes >= 0 && newest.moved_bytes - first.moved_bytes <
                                                      kFewBytes + kFewBytesASecond * seconds;
  const auto add = [&](int32_t pid, const Threads& threads) {
    for (const v1::ThreadStack& thread : threads) {
      const bool is_marked = standing.newest.threads.count({pid, thread.tid()}) != 0;
      if (is_marked && AsksItself(thread)) asking.insert({pid, thread.tid()});
    }
  };
  if (!is_quiet) return asking;
  add(stack.pid(), stack.threads());
  for (const v1::ChildProcess& child : stack.children()) add(child.pid(), child.threads());
  // What they do for this process is among its own bytes.
  for (const v1::ChildProcess& other : stack.others()) add(other.pid(), other.threads());
  return asking;
}

bool Rests(const v1::ProcessStack& stack, const Standing& standing) {
  const int32_t pid = stack.pid();
  const StandingMarks &first = standing.first, &newest = standing.newest;
  const ThreadIds asking = ListAsking(stack, standing);
  const double seconds = static_cast<double>(newest.at_ns - first.at_ns) / kSecond;
  for (const auto& [id, thread] : newest.threads) {
    const auto before = first.threads.find(id);
    if (before == first.threads.end() || thread.switches == before->second.switches) continue;
    if (thread.switches == 0 || before->second.switches == 0) continue;  // not known
    if (id == std::make_pair(pid, pid) && WaitsForAFileLock(standing)) continue;
    if (asking.count(id) != 0) continue;
    const auto wakes = static_cast<double>(thread.switches - before->second.switches);
    if (wakes > kFewWakes && wakes < kLeastPollsASecond * seconds) return true;
  }
  return false;
}

// No rule compares the program's functions of these.
StackPlace ShortPlace(StackPlace place) {
  place.functions = CutText(place.functions, kLongestFunctions);
  place.at = CutText(place.at, limits::kSite);
  place.inside = CutText(place.inside, limits::kName);
  place.program = {};
  place.handles = {};
  if (place.other_end.size() > limits::kOtherEnds) place.other_end.resize(limits::kOtherEnds);
  return place;
}

// The agent lists the main thread and those of Python. One that is held up in a request tells more
// than others.
std::vector<StandPlace> PlacesOf(const v1::ChildProcess& child) {
  std::vector<StandPlace> places;
  for (const bool of_main : {true, false}) {
    for (const v1::ThreadStack& thread : child.threads()) {
      if ((thread.tid() != child.pid()) == of_main) continue;
      places.emplace_back(ShortPlace(PlaceOfThread(thread)));
    }
  }
  if (places.size() > kMostPlaces) {
    std::stable_partition(places.begin() + 1, places.end(), IsHeldUpInARequest);
    places.resize(kMostPlaces);
  }
  return places;
}

void AddNames(const Threads& threads, std::map<int32_t, std::string>* names) {
  for (const v1::ThreadStack& thread : threads) {
    for (const v1::OtherEnd* end : {&thread.other_end(), &thread.watched()}) {
      for (int i = 0; i < std::min(end->pids_size(), end->names_size()); ++i) {
        if (names->size() < kMostOtherNames)
          (*names)[end->pids(i)] = CutText(end->names(i), limits::kThreadName);
      }
    }
  }
}

void AddPids(const google::protobuf::RepeatedField<int32_t>& added, std::vector<int32_t>* pids) {
  for (const int32_t pid : added) {
    const bool is_new = std::find(pids->begin(), pids->end(), pid) == pids->end();
    if (is_new && pids->size() < kMostLinked) pids->push_back(pid);
  }
}

void AddSockets(const v1::ProcessStack& stack, StandingSockets* sockets) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    AddPids(thread.other_end().called(), &sockets->called);
    AddPids(thread.watched().called(), &sockets->called);
    if (!thread.has_watched()) continue;
    sockets->known = true;
    sockets->listens = sockets->listens || thread.watched().listens();
    sockets->received_bytes += thread.watched().received_bytes();
    AddPids(thread.watched().pids(), &sockets->with);
  }
}

// Which thread watches them changes, and for a moment none does.
void KeepSockets(const StandingSockets& before, StandingSockets* sockets) {
  const auto keep = [](const std::vector<int32_t>& known, std::vector<int32_t>* pids) {
    for (const int32_t pid : known) {
      const bool is_new = std::find(pids->begin(), pids->end(), pid) == pids->end();
      if (is_new && pids->size() < kMostLinked) pids->push_back(pid);
    }
  };
  keep(before.called, &sockets->called);
  keep(before.with, &sockets->with);
  sockets->known = sockets->known || before.known;
  sockets->received_bytes = std::max(sockets->received_bytes, before.received_bytes);
}

using Processes = google::protobuf::RepeatedPtrField<v1::ChildProcess>;

void AddProcesses(const Processes& processes, std::map<int32_t, std::string>* names,
                  std::vector<StandingChild>* added) {
  for (const v1::ChildProcess& process : processes) {
    if (added->size() == kMostChildren) break;
    added->push_back({process.pid(), process.parent(), CutText(process.name(), limits::kThreadName),
                      PlacesOf(process), process.own_session(), process.hides_a_wait(),
                      process.state().empty() ? '?' : process.state().front()});
    AddNames(process.threads(), names);
  }
}

void AddMain(const v1::ProcessStack& stack, Standing* standing) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (thread.tid() != stack.pid()) continue;
    standing->state = thread.state().empty() ? '?' : thread.state().front();
    standing->wait_channel = CutText(thread.wait_channel(), limits::kName);
    standing->place = StandPlace(ShortPlace(PlaceOfThread(thread)), standing->wait_channel);
  }
}

// Inside a call of gloo: its other threads are without work.
bool IsInACallOfGloo(const StackPlace& place) {
  return absl::StrContains(place.functions, kGlooWaits);
}

// Those in the program, and those that wait for somebody.
void AddOtherThreads(const v1::ProcessStack& stack, Standing* standing) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (thread.tid() == stack.pid() || standing->threads.size() == kMostStandThreads) continue;
    StackPlace place = PlaceOfThread(thread);
    const bool is_for_others = HasWait(place.functions, waits::kRequest) || IsInACallOfGloo(place);
    if (thread.other_end().pids().empty() && !is_for_others && !RunsTheProgram(thread)) continue;
    standing->threads.push_back({static_cast<uint32_t>(thread.tid()),
                                 CutText(thread.name(), limits::kThreadName),
                                 StandPlace(ShortPlace(std::move(place)))});
  }
}

// Looks at all threads: those of a server's library are not in the program.
bool HasServer(const v1::ProcessStack& stack) {
  return std::any_of(stack.threads().begin(), stack.threads().end(),
                     [&](const v1::ThreadStack& thread) {
                       return thread.tid() != stack.pid() &&
                              FindIdleLoop(PlaceOfThread(thread).functions) != nullptr;
                     });
}

// In a sample of a row that goes on.
void KeepWhatWasSeen(const Standing& before, const v1::ProcessStack& stack, Standing* standing) {
  KeepSockets(before.sockets, &standing->sockets);
  KeepUnseenThreads(before.newest, &standing->newest);
  if (standing->newest.unseen.count({stack.pid(), stack.pid()}) != 0) {
    standing->place = before.place;
  }
}

void AddLocks(const v1::ProcessStack& stack, Standing* standing) {
  for (const v1::FileLock& lock : stack.locks()) {
    if (standing->locks.size() == kMostLocks) return;
    standing->locks.push_back({lock.inode(), CutText(lock.path(), limits::kSite), lock.holder(),
                               lock.waits(), lock.first(),
                               lock.has_last() ? lock.last() : UINT64_MAX, lock.child()});
  }
}

}  // namespace

std::shared_ptr<const Standing> AddToRow(const std::shared_ptr<const Standing>& before,
                                         const v1::ProcessStack& stack, int64_t now_ns,
                                         bool may_spin) {
  auto standing = std::make_shared<Standing>();
  standing->newest = MarksOf(stack, now_ns);
  if (standing->newest.threads.empty()) return nullptr;
  AddMain(stack, standing.get());
  AddOtherThreads(stack, standing.get());
  const bool spins = may_spin && MaySpin(*standing);
  const double most_cpus = spins ? kMostCpusOfASpin : MostCpus(*standing);
  const bool goes_on = before != nullptr && !HasMoved(before->newest, standing->newest, most_cpus);
  standing->first = goes_on ? before->first : standing->newest;
  standing->since_ns = standing->first.at_ns;
  standing->newest_ns = now_ns;
  standing->samples = goes_on ? before->samples + 1 : 1;
  standing->spins =
      spins && goes_on && HasMoved(standing->first, standing->newest, MostCpusAsleep(*standing));
  standing->rests = !standing->spins && Rests(stack, *standing);
  standing->has_server = HasServer(stack);
  AddNames(stack.threads(), &standing->names);
  AddProcesses(stack.children(), &standing->names, &standing->children);
  AddProcesses(stack.others(), &standing->names, &standing->others);
  AddLocks(stack, standing.get());
  AddSockets(stack, &standing->sockets);
  if (goes_on) KeepWhatWasSeen(*before, stack, standing.get());
  return standing;
}

}  // namespace rollcall
