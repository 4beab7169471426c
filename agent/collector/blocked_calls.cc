// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/blocked_calls.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agent/processes/living_threads.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// For calls that last longer, the collector checks that the calling thread still exists. If the
// process has a pid namespace of its own, this check reads all of its threads.
constexpr int64_t kLongCall = kSecond;
constexpr int64_t kCheckEvery = 5 * kSecond;
constexpr int64_t kClocksDiffer = kSecond;  // largest error of a thread's start time

// Keyed by the tid in the process's own pid namespace. Of a thread that cannot be read, what is
// known of its process is all.
std::map<uint32_t, CpuUse> ReadCpuUses(const ProcessReads& reads, const std::vector<uint32_t>& tids,
                                       const CpuUse& of_process, ThreadNumbers* numbers) {
  std::vector<std::pair<uint32_t, int32_t>> threads;  // own tid, tid
  for (const uint32_t tid : tids) threads.emplace_back(tid, numbers->Translate(tid, reads));
  using Uses = std::map<uint32_t, CpuUse>;
  const auto read = [threads, used_ns = of_process.used_ns](const std::string& proc_root,
                                                            pid_t pid) {
    Uses found;
    for (const auto& [own_tid, tid] : threads) {
      if (tid == 0) continue;
      const auto thread = ReadProcThread(proc_root, pid, tid);
      if (!thread.ok()) continue;
      found[own_tid] = {used_ns, thread->state, static_cast<int64_t>(thread->cpu_ns),
                        thread->lacked_ns};
    }
    return found;
  };
  Uses uses = reads.Get(read).value_or(Uses());
  for (const uint32_t tid : tids) uses.emplace(tid, of_process);
  return uses;
}

}  // namespace

void BlockedCalls::FindEndedThreads(const ProcessReads& reads, const SegmentSnapshot& snapshot) {
  std::vector<pid_t> callers;
  for (const BlockedSnapshot& blocked : snapshot.blocked) {
    if (reads.now_ns() - blocked.since_ns < kLongCall) continue;
    callers.push_back(static_cast<pid_t>(blocked.tid));
  }
  const bool checked_lately = checked_ns_ != 0 && reads.now_ns() - checked_ns_ < kCheckEvery;
  if (callers.empty() || checked_lately) return;
  const SeenProcess& process = reads.process();
  const auto find = [id = process.id, callers, other_numbers = process.other_numbers](
                        const std::string& proc_root, pid_t) {
    return FindThreads(proc_root, id, callers, other_numbers);
  };
  const auto starts = reads.Get(find).value_or(std::nullopt);
  // Without a result keep the previous one, so that calls of ended threads stay removed.
  if (!starts.has_value()) return;
  checked_ns_ = reads.now_ns();
  calls_from_ns_.clear();
  const bool clock_known = process.wait_floor_ns == 0;
  for (const pid_t caller : callers) {
    int64_t* from_ns = &calls_from_ns_[static_cast<uint32_t>(caller)];
    const auto found = starts->find(caller);
    if (found == starts->end()) {
      *from_ns = reads.now_ns();
    } else if (clock_known) {
      *from_ns = BeganAtSteadyNs(found->second) - kClocksDiffer;
    }
  }
}

void BlockedCalls::KeepWaits(const ProcessReads& reads, const CpuUse& of_process,
                             ThreadNumbers* numbers, SegmentSnapshot* snapshot) {
  if (!reads.is_live()) return RemoveLoops(snapshot);
  if (reads.process().visible) {
    if (!reads.process().ended) FindEndedThreads(reads, *snapshot);
    const auto is_from_ended_thread = [this](const BlockedSnapshot& blocked) {
      const auto from = calls_from_ns_.find(blocked.tid);
      return from != calls_from_ns_.end() && blocked.since_ns < from->second;
    };
    std::vector<BlockedSnapshot>* all = &snapshot->blocked;
    all->erase(std::remove_if(all->begin(), all->end(), is_from_ended_thread), all->end());
  }
  const std::vector<uint32_t> due = paces_.Due(reads.now_ns(), *snapshot);
  std::map<uint32_t, CpuUse> uses;
  if (!due.empty()) uses = ReadCpuUses(reads, due, of_process, numbers);
  paces_.KeepWaits(reads.now_ns(), uses, snapshot);
}

void ReportBlocked(const ProcessReads& reads, const SegmentSnapshot& snapshot, int64_t floor_ns,
                   ThreadNumbers* numbers, v1::Evidence* evidence) {
  for (const BlockedSnapshot& blocked : snapshot.blocked) {
    v1::BlockedCall* call = evidence->add_blocked();
    call->set_thread(numbers->Translate(blocked.tid, reads));
    call->set_op(blocked.op);
    call->set_since_ns(std::max(blocked.since_ns, floor_ns));
    if (!blocked.key.empty()) {
      call->set_key(blocked.key);
      call->set_keys(blocked.keys);
      call->set_key_timeout_ms(blocked.key_timeout_ms);
    }
    for (const CommSnapshot& comm : snapshot.communicators) {
      if (comm.index != blocked.comm) continue;
      call->set_communicator(comm.id);
      if (comm.rank >= 0) call->set_rank(comm.rank);
    }
  }
}

}  // namespace rollcall
