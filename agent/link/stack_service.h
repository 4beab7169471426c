// SPDX-License-Identifier: Apache-2.0
// Answers the daemon's requests for stacks, one process at a time. The daemon names processes and
// nothing else: the agent decides whether it takes their stacks, and how.
//
// The agent takes the stacks of a process if it has reported the process on the stream that asks,
// if its stacks are not switched off, and if the limit per minute permits it. An answer without
// stacks has the reason in ProcessStack::error. What transfers over the network wait for is no
// stack: the agent reads it from the segment, also if stacks are off.
//
// The agent itself reads only /proc and memory. A child process reads the files of the process,
// which may lie on a server that does not answer (agent/stacks/stack_namer.h).
//
// Take() blocks up to a minute and belongs to one thread. Refuse() and Cancel() are thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/collector/served_segments.h"
#include "agent/link/sample_effects.h"
#include "agent/link/stack_patience.h"
#include "agent/outside/descendants.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/stacks/any_stack_taker.h"
#include "agent/stacks/stack_allowance.h"
#include "agent/stacks/stack_namer.h"
#include "base/monotonic_clock.h"
#include "base/mutex.h"
#include "base/throttle.h"
#include "rollcall/v1/agent.pb.h"
#include "security/redact.h"

namespace rollcall {

struct OutsideAnswer;
struct OutsideQuestion;

struct StackServiceOptions {
  std::string proc_root = "/proc";
  int64_t max_per_minute = 600;  // processes; 0 means no limit
  bool stacks_on = true;         // false if the agent takes no stacks
  std::shared_ptr<const Redactor> redactor = DefaultRedactor();
  // Counts max_per_minute. Shared with other services of this agent; nullptr means its own.
  std::shared_ptr<StackAllowance> allowance;
  // Shared likewise; nullptr means its own.
  std::shared_ptr<StackNamer> namer;
  std::shared_ptr<SampleEffects> effects;
  // Thread-safe. The processes that may be at the other end of a socket, or nullptr.
  std::function<std::vector<pid_t>()> neighbours;
  // Thread-safe. Where a process records what its transfers over the network wait for; nullptr if
  // none does.
  std::function<ServedSegment(ProcessId)> segment_of;
  std::function<int64_t()> now_ns = MonotonicNs;
};

class StackService {
 public:
  using IsReported = std::function<bool(ProcessId)>;

  // `is_reported`: thread-safe; whether the agent has reported this process to the daemon that
  // asks.
  StackService(StackServiceOptions options, IsReported is_reported);

  // `children`: with the threads of the processes that it has started, by the same rules.
  // `network_of`: with what its transfers over the network wait for, on these communicators.
  v1::ProcessStack Take(ProcessId process, bool children = false,
                        const std::vector<uint64_t>& network_of = {});
  // What its transfers over the network wait for, without stacks: it is not sampled, and no share
  // of the samples is spent. Of the thread of Take().
  v1::ProcessStack TransfersOf(ProcessId process, const std::vector<uint64_t>& network_of);
  // How the process runs now. nullopt if it did not answer in time. Of the thread of Take().
  std::optional<v1::Evidence> EvidenceOf(ProcessId process);
  // An answer without stacks, counted and logged.
  v1::ProcessStack Refuse(ProcessId process, const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a Take() that waits.
  void Cancel() { threads_.Cancel(); }

 private:
  // One thread at a time uses these. That thread may block forever.
  struct Tools {
    Tools(const std::string& root, std::shared_ptr<StackNamer> with,
          std::shared_ptr<SampleEffects> known)
        : proc_root(root),
          namer(std::move(with)),
          effects(std::move(known)),
          taker(root, std::make_shared<SymbolsOfNamer>(namer)) {}
    v1::ProcessStack Take(ProcessId process, const TakeLimits& limits);

    const std::string proc_root;
    const std::shared_ptr<StackNamer> namer;
    const std::shared_ptr<SampleEffects> effects;
    AnyStackTaker taker;
  };

  // A process, and who pays for it.
  struct Subject {
    ProcessId id;
    Payer payer;
    int64_t user;  // as PayerOfReads()
  };

  v1::ProcessStack RefuseUnwatched(ProcessId process);
  v1::ProcessStack TakeFrom(ProcessId process, bool children,
                            const std::vector<uint64_t>& network_of);
  v1::ProcessStack SampleAll(const Subject& subject, bool children);
  void AddNetwork(ProcessId process, const std::vector<uint64_t>& network_of,
                  v1::ProcessStack* stack);
  // nullopt if they have not come in time.
  std::optional<v1::ProcessStack> Sample(const Subject& subject, const TakeLimits& limits,
                                         int64_t timeout_ns);
  void AddSurroundings(const Subject& subject, bool children, v1::ProcessStack* stack);
  void AddChildStacks(const Subject& subject, const Starts& starts, v1::ProcessStack* stack);
  bool AddChildStack(const Subject& subject, uint64_t started, v1::ChildProcess* child);
  void SayIfCut(const OutsideAnswer& answer);
  void AddOthers(const Subject& subject, const OutsideQuestion& question, v1::ProcessStack* stack);
  void LookForOtherThreads(const Subject& subject, v1::ChildProcess* child);
  std::vector<pid_t> Neighbours(int64_t user) const;
  // nullopt if it has not come in time, or the process has ended meanwhile, and what was read may
  // be another one's.
  template <typename Value>
  std::optional<Value> LookAround(const Subject& subject, std::function<Value()> look);

  const StackServiceOptions options_;
  const IsReported is_reported_;
  SpareThreads threads_;
  const std::shared_ptr<StackAllowance> allowance_;
  const std::shared_ptr<StackNamer> namer_;
  const std::shared_ptr<SampleEffects> effects_;
  // Used by the thread of Take(), or by the thread that it waits for.
  std::shared_ptr<Tools> tools_;
  StackPatience patience_;  // of the thread of Take()
  int64_t sampled_ns_ = 0;  // likewise: in Sample(), since the start
  Throttle cut_;            // likewise: tables of locks that were not read to their ends

  Mutex mutex_;
  Throttle refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
