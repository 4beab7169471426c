// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_surroundings.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "agent/outside/descendants.h"
#include "agent/outside/other_ends.h"
#include "agent/processes/process_memory.h"
#include "agent/segments/segment_reader.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr size_t kMostLookedAt = 16;  // threads of one process
constexpr int64_t kLookForNs = kSecond;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / kSecond; }

void AddChildren(const Descendants& found, v1::ProcessStack* stack) {
  stack->set_ended_children_cpu_seconds(Seconds(found.ended_cpu_ns));
  for (const Descendant& child : found.processes) {
    v1::ChildProcess* added = stack->add_children();
    added->set_pid(child.pid);
    added->set_parent(child.parent);
    added->set_name(Printable(child.name.c_str(), child.name.size()));
    added->set_state(std::string(1, child.state));
    added->set_cpu_seconds(Seconds(child.cpu_ns));
    added->set_moved_bytes(static_cast<double>(child.moved_bytes));
    added->set_age_seconds(Seconds(child.age_ns));
  }
}

// The main thread and those of Python: those of libraries wait for descriptors all the time.
bool IsWorthALook(const v1::ProcessStack& stack, const v1::ThreadStack& thread) {
  if (thread.state() != "S" || absl::StrContains(thread.wait_channel(), "futex")) return false;
  return thread.tid() == stack.pid() ||
         std::any_of(thread.frames().begin(), thread.frames().end(),
                     [](const v1::Frame& frame) { return frame.python(); });
}

void AddOtherEnd(const OtherEnd& end, v1::ThreadStack* thread) {
  if (end.kind.empty()) return;
  v1::OtherEnd* other_end = thread->mutable_other_end();
  other_end->set_kind(end.kind);
  for (const pid_t pid : end.pids) other_end->add_pids(pid);
  double bytes = 0;
  for (const Received& received : end.received) {
    v1::SocketBytes* socket = other_end->add_sockets();
    socket->set_inode(received.inode);
    socket->set_received(static_cast<double>(received.bytes));
    bytes += socket->received();
  }
  other_end->set_received_bytes(bytes);
}

void AddOtherEnds(const std::string& proc_root, const std::vector<pid_t>& among,
                  v1::ProcessStack* stack) {
  std::vector<v1::ThreadStack*> threads;
  std::vector<pid_t> tids;
  for (v1::ThreadStack& thread : *stack->mutable_threads()) {
    if (!IsWorthALook(*stack, thread) || tids.size() == kMostLookedAt) continue;
    threads.push_back(&thread);
    tids.push_back(thread.tid());
  }
  TracerMemory traced(stack->pid());
  ResidentMemory memory(&traced, proc_root, stack->pid());
  const std::vector<OtherEnd> ends =
      FindOtherEnds(proc_root, stack->pid(), tids, among, MonotonicNs() + kLookForNs, &memory);
  for (size_t i = 0; i < ends.size(); ++i) AddOtherEnd(ends[i], threads[i]);
}

}  // namespace

void AddSurroundings(const std::string& proc_root, const std::vector<pid_t>& neighbours,
                     v1::ProcessStack* stack) {
  if (stack->threads().empty()) return;
  const Descendants found = FindDescendants(proc_root, stack->pid());
  AddChildren(found, stack);
  std::vector<pid_t> among;
  for (const Descendant& child : found.processes) among.push_back(child.pid);
  for (const pid_t pid : neighbours) {
    if (std::find(among.begin(), among.end(), pid) == among.end()) among.push_back(pid);
  }
  AddOtherEnds(proc_root, among, stack);
}

}  // namespace rollcall
