// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/children_at_work.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/base_name.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/report/program_line.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr double kLeastApart = 0.2;   // seconds
constexpr double kLeastOfACpu = 0.1;  // a process that looks around every now and then uses less
constexpr double kTraceOfACpu =
    0.01;  // what a process that works may get on a host without a free CPU
constexpr double kMuchOfACpu = 0.5;
constexpr double kLeastMoved = 256 << 10;  // bytes a second
constexpr double kLeastReceived = 4 << 10;
// By one connection of a thread that waits for several: an event loop has heartbeats and streams of
// logs, and waits for something else.
constexpr double kLeastAmongSeveral = 256 << 10;

struct Use {
  double cpu = 0;
  double moved = 0;
};

// What each process has used; the process itself stands for its children that have ended.
std::map<int32_t, Use> UsesOf(const v1::ProcessStack& stack) {
  std::map<int32_t, Use> uses;
  uses[stack.pid()].cpu = stack.ended_children_cpu_seconds();
  for (const v1::ChildProcess& child : stack.children()) {
    uses[child.pid()] = {child.cpu_seconds(), child.moved_bytes()};
  }
  return uses;
}

// What a child had used is that of the process that has waited for it, once it has ended: its
// nearest ancestor that still lives.
void AddEnded(const v1::ProcessStack& before, const std::map<int32_t, Use>& now,
              std::map<int32_t, Use>* uses) {
  std::map<int32_t, int32_t> parents;
  for (const v1::ChildProcess& child : before.children()) parents[child.pid()] = child.parent();
  for (const v1::ChildProcess& child : before.children()) {
    if (now.count(child.pid()) != 0) continue;
    int32_t heir = child.parent();
    for (size_t i = 0; i < parents.size() && now.count(heir) == 0; ++i) {
      const auto parent = parents.find(heir);
      heir = parent == parents.end() ? before.pid() : parent->second;
    }
    (*uses)[heir].cpu += child.cpu_seconds();
  }
}

double SecondsBetween(const v1::ProcessStack& before, const v1::ProcessStack& after) {
  const auto seconds = [](const v1::ProcessStack& stack) {
    return static_cast<double>(stack.taken_at().seconds()) + stack.taken_at().nanos() / 1e9;
  };
  return seconds(after) - seconds(before);
}

absl::string_view LastWord(absl::string_view name) { return name.substr(name.rfind('.') + 1); }

bool WaitsForAChild(const v1::Frame& frame) {
  if (frame.python()) {
    if (!IsLibraryFrame(frame)) return false;
    const absl::string_view file = BaseName(frame.file());
    const auto& known = WaitFramesOf(waits::kChildOfLibrary);
    return std::any_of(known.begin(), known.end(), [&](const WaitFrame& wait) {
      return file == wait.where && (wait.name.empty() || LastWord(frame.function()) == wait.name);
    });
  }
  absl::string_view name = frame.function();
  while (absl::StartsWith(name, "_")) name.remove_prefix(1);
  if (absl::StartsWith(name, "libc_")) name.remove_prefix(5);
  return IsWait(name, waits::kChildOfCode);
}

bool IsFromAChild(const v1::ProcessStack& stack, const v1::ThreadStack& thread) {
  if (!thread.has_other_end()) return false;
  const auto& pids = thread.other_end().pids();
  return std::any_of(stack.children().begin(), stack.children().end(), [&](const auto& child) {
    return std::find(pids.begin(), pids.end(), child.pid()) != pids.end();
  });
}

// Whether the thread waits for what another thread of its process brings, as the results of a pool:
// in a library's wait, or in a condition of native code. Who waits for a lock does so in a line of
// the program.
bool WaitsForAThread(const v1::ThreadStack& thread) {
  for (const v1::Frame& frame : thread.frames()) {
    if (!frame.python()) continue;
    return IsLibraryFrame(frame) && IsWait(LastWord(frame.function()), waits::kThreadOfLibrary);
  }
  return std::any_of(thread.frames().begin(), thread.frames().end(), [](const v1::Frame& frame) {
    return HasWait(frame.function(), waits::kThreadOfCode);
  });
}

bool WaitsForAChild(const v1::ProcessStack& stack, const v1::ThreadStack& thread) {
  if (thread.wait_channel() == "do_wait" || IsFromAChild(stack, thread)) return true;
  return std::any_of(thread.frames().begin(), thread.frames().end(),
                     [](const v1::Frame& frame) { return WaitsForAChild(frame); });
}

// Others serve metrics, or exchange heartbeats.
bool StandsForProcess(const v1::ProcessStack& stack, const v1::ThreadStack& thread) {
  const auto& tids = stack.calling_tids();
  return thread.tid() == stack.pid() ||
         std::find(tids.begin(), tids.end(), thread.tid()) != tids.end();
}

// Counts the connection that receives most, of those that the thread waited for both times.
double ReceivedASecond(const v1::OtherEnd& before, const v1::OtherEnd& after, double seconds) {
  std::map<uint64_t, double> earlier;
  for (const v1::SocketBytes& socket : before.sockets()) {
    earlier[socket.inode()] = socket.received();
  }
  double most = 0;
  for (const v1::SocketBytes& socket : after.sockets()) {
    const auto known = earlier.find(socket.inode());
    if (known == earlier.end()) continue;
    most = std::max(most, (socket.received() - known->second) / seconds);
  }
  return most >= (after.sockets_size() > 1 ? kLeastAmongSeveral : kLeastReceived) ? most : 0;
}

}  // namespace

std::vector<ChildAtWork> FindChildrenAtWork(const v1::ProcessStack& before,
                                            const v1::ProcessStack& after) {
  std::vector<ChildAtWork> working;
  const double seconds = SecondsBetween(before, after);
  if (!(seconds >= kLeastApart)) return working;
  std::map<int32_t, Use> uses = UsesOf(before);
  const std::map<int32_t, Use> now = UsesOf(after);
  AddEnded(before, now, &uses);
  const auto add = [&](int32_t pid, const std::string& name) {
    const auto known = uses.find(pid);
    const Use then = known == uses.end() ? Use() : known->second;
    const Use& use = now.at(pid == 0 ? after.pid() : pid);
    const double cpu = (use.cpu - then.cpu) / seconds;
    const double moved = (use.moved - then.moved) / seconds;
    const bool works = cpu >= kLeastOfACpu || moved >= kLeastMoved;
    if (works || cpu >= kTraceOfACpu) working.push_back({pid, name, std::max(0.0, cpu), !works});
  };
  for (const v1::ChildProcess& child : after.children()) {
    // An older one has come into the list because another one has left it.
    const bool is_known = uses.count(child.pid()) != 0 || child.age_seconds() <= seconds;
    if (is_known) add(child.pid(), child.name());
  }
  uses[0] = uses[after.pid()];
  add(0, "");
  std::stable_sort(working.begin(), working.end(), [](const ChildAtWork& a, const ChildAtWork& b) {
    return std::make_pair(a.is_slow, b.cpus) < std::make_pair(b.is_slow, a.cpus);
  });
  if (working.size() > limits::kChildrenAtWork) working.resize(limits::kChildrenAtWork);
  return working;
}

double BytesReceivedASecond(const v1::ProcessStack& before, const v1::ProcessStack& after) {
  const double seconds = SecondsBetween(before, after);
  if (!(seconds >= kLeastApart)) return 0;
  std::map<int32_t, const v1::OtherEnd*> earlier;
  for (const v1::ThreadStack& thread : before.threads()) {
    if (thread.has_other_end()) earlier[thread.tid()] = &thread.other_end();
  }
  double most = 0;
  for (const v1::ThreadStack& thread : after.threads()) {
    const auto known = earlier.find(thread.tid());
    if (known == earlier.end() || !StandsForProcess(after, thread)) continue;
    most = std::max(most, ReceivedASecond(*known->second, thread.other_end(), seconds));
  }
  return most;
}

void KeepAwaited(const v1::ProcessStack& stack, std::vector<ChildAtWork>* children) {
  const auto& threads = stack.threads();
  const bool others_wait =
      std::any_of(threads.begin(), threads.end(),
                  [&](const v1::ThreadStack& thread) { return WaitsForAChild(stack, thread); });
  const bool waits =
      std::any_of(threads.begin(), threads.end(), [&](const v1::ThreadStack& thread) {
        return StandsForProcess(stack, thread) &&
               (WaitsForAChild(stack, thread) || (others_wait && WaitsForAThread(thread)));
      });
  if (waits) return;
  const bool sleeps = std::any_of(threads.begin(), threads.end(), [&](const auto& thread) {
    return thread.tid() == stack.pid() && absl::StrContains(thread.wait_channel(), "nanosleep");
  });
  const auto is_other = [sleeps](const ChildAtWork& child) {
    return !sleeps || child.cpus < kMuchOfACpu;
  };
  children->erase(std::remove_if(children->begin(), children->end(), is_other), children->end());
}

void RemoveRanks(const std::set<int32_t>& ranks, v1::ProcessStack* stack) {
  std::set<int32_t> removed = ranks;
  auto* children = stack->mutable_children();
  const auto end = std::remove_if(children->begin(), children->end(), [&](const auto& child) {
    if (removed.count(child.pid()) == 0 && removed.count(child.parent()) == 0) return false;
    removed.insert(child.pid());
    return true;
  });
  children->erase(end, children->end());
}

}  // namespace rollcall
