// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stack_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/collector/process_facts.h"
#include "agent/collector/redact_update.h"
#include "agent/link/child_stacks.h"
#include "agent/link/network_samples.h"
#include "agent/link/stack_surroundings.h"
#include "agent/link/stacks_proto.h"
#include "agent/outside/moved_bytes.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_lines.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kReadTimeout = kSecond;  // for reading a process in /proc
constexpr int64_t kAroundTimeout = 5 * kSecond;
// No sample begins later than that, and each has that time.
constexpr int64_t kChildrenTimeout = 10 * kSecond;

struct Look {
  bool is_alive = false;
  Payer payer;
};

// Reads stat, status and maps, which stack taking needs, so that a process whose /proc files block
// is detected here within kReadTimeout.
Look LookAt(const std::string& proc_root, ProcessId process) {
  const auto stat = ReadProcStat(proc_root, process.pid);
  static_cast<void>(ForEachProcLine(ProcPath(proc_root, process.pid, "maps"),
                                    MonotonicNs() + kReadTimeout, [](absl::string_view) {}));
  return {stat.ok() && stat->start_time == process.start_time, ReadPayer(proc_root, process.pid)};
}

v1::ProcessStack WithoutStacks(ProcessId process, const std::string& why) {
  v1::ProcessStack none;
  none.set_pid(process.pid);
  none.set_error(why);
  return none;
}

}  // namespace

StackService::StackService(StackServiceOptions options, IsReported is_reported)
    : options_(std::move(options)),
      is_reported_(std::move(is_reported)),
      allowance_(options_.allowance != nullptr
                     ? options_.allowance
                     : std::make_shared<StackAllowance>(options_.max_per_minute)),
      namer_(options_.namer != nullptr ? options_.namer
                                       : std::make_shared<StackNamer>(options_.proc_root)),
      effects_(options_.effects != nullptr ? options_.effects : std::make_shared<SampleEffects>()) {
}

v1::ProcessStack StackService::Tools::Take(ProcessId process, const TakeLimits& limits) {
  const std::optional<uint64_t> moved = ReadMovedBytes(proc_root, process.pid);
  RawSample sample = taker.Take(process.pid, limits);
  uint64_t added = 0;
  if (moved.has_value() && sample.method == "signal") {  // it has read its own memory for that
    added = std::max(ReadMovedBytes(proc_root, process.pid).value_or(0), *moved) - *moved;
  }
  ProcessStack named = namer->Name(std::move(sample), limits);
  for (ThreadStack& thread : named.threads) {
    if (thread.switches == 0) continue;
    thread.switches =
        effects->WithoutSamples(process, thread.tid, thread.switches, thread.sample_switches);
  }
  v1::ProcessStack stack = ToProto(named);
  if (!moved.has_value()) return stack;
  stack.set_moved_bytes(static_cast<double>(
      effects->WithoutSamples(process, SampleEffects::kWholeProcess, *moved, added)));
  return stack;
}

v1::ProcessStack StackService::RefuseUnwatched(ProcessId process) {
  return Refuse(process, "the agent of this host does not watch this process: no stacks taken");
}

v1::ProcessStack StackService::Take(ProcessId process, bool children,
                                    const std::vector<uint64_t>& network_of) {
  if (!is_reported_(process)) return RefuseUnwatched(process);
  if (options_.stacks_on) return TakeFrom(process, children, network_of);
  v1::ProcessStack none =
      Refuse(process, "the agent of this host takes no stacks: it runs with --stacks=off");
  AddNetwork(process, network_of, &none);
  return none;
}

v1::ProcessStack StackService::TransfersOf(ProcessId process,
                                           const std::vector<uint64_t>& network_of) {
  if (!is_reported_(process)) return RefuseUnwatched(process);
  v1::ProcessStack transfers;
  transfers.set_pid(process.pid);
  AddNetwork(process, network_of, &transfers);
  return transfers;
}

std::optional<v1::Evidence> StackService::EvidenceOf(ProcessId process) {
  const std::string& proc_root = options_.proc_root;
  return threads_.Get<v1::Evidence>(
      absl::StrCat(process.pid),
      [proc_root, process] { return EvidenceNow(proc_root, process.pid, process.start_time); },
      kReadTimeout, PayerOfReads(proc_root, process.pid));
}

v1::ProcessStack StackService::Refuse(ProcessId process, const std::string& why) {
  const MutexLock lock(mutex_);
  if (refusals_.Take(options_.now_ns()).has_value()) {
    spdlog::warn(
        "refused to take stacks for the daemon; refusals since the start: {}; the last: "
        "process {}: {}",
        refusals_.total(), process.pid, why);
  }
  return WithoutStacks(process, why);
}

std::optional<v1::ProcessStack> StackService::Sample(const Subject& subject,
                                                     const TakeLimits& limits, int64_t timeout_ns) {
  if (tools_ == nullptr) tools_ = std::make_shared<Tools>(options_.proc_root, namer_, effects_);
  auto stack = std::make_shared<v1::ProcessStack>();
  const auto take = [tools = tools_, process = subject.id, limits, stack] {
    *stack = tools->Take(process, limits);
  };
  const int64_t begun_ns = options_.now_ns();
  const int64_t patience_ns = patience_.TimeoutNs(subject.payer, begun_ns);
  const bool in_time = threads_.Run(absl::StrCat(subject.id.pid), take,
                                    std::min(timeout_ns, patience_ns), subject.user);
  const int64_t took_ns = options_.now_ns() - begun_ns;
  allowance_->Charge(subject.payer, took_ns);
  sampled_ns_ += took_ns;
  if (in_time) return std::move(*stack);
  tools_ = nullptr;  // the blocked thread still uses them
  patience_.CountTimeout(subject.payer, options_.now_ns());
  return std::nullopt;
}

template <typename Value>
std::optional<Value> StackService::LookAround(const Subject& subject, std::function<Value()> look) {
  const auto look_twice = [proc_root = options_.proc_root, process = subject.id,
                           look = std::move(look)]() -> std::optional<Value> {
    Value value = look();
    const auto stat = ReadProcStat(proc_root, process.pid);
    if (!stat.ok() || stat->start_time != process.start_time) return std::nullopt;
    return value;
  };
  return threads_
      .Get<std::optional<Value>>(absl::StrCat("around ", subject.id.pid), look_twice,
                                 kAroundTimeout, subject.user)
      .value_or(std::nullopt);
}

// Returns the processes of the same user: a process that blocks its readers must not block the
// samples of others.
std::vector<pid_t> StackService::Neighbours(int64_t user) const {
  std::vector<pid_t> all =
      options_.neighbours == nullptr ? std::vector<pid_t>() : options_.neighbours();
  const auto is_of_another = [&](pid_t pid) {
    return PayerOfReads(options_.proc_root, pid) != user;
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_of_another), all.end());
  return all;
}

void StackService::AddSurroundings(const Subject& subject, bool children, v1::ProcessStack* stack) {
  if (stack->threads().empty()) return;
  const std::string& proc_root = options_.proc_root;
  const auto found = LookAround<Descendants>(
      subject, [proc_root, pid = subject.id.pid] { return FindDescendants(proc_root, pid); });
  if (!found.has_value()) return;
  AddChildren(*found, stack);
  const Starts starts = StartsOf(*found);
  if (children) AddChildStacks(subject, starts, stack);
  const OutsideQuestion question = AskOutside(*stack, Neighbours(subject.user), starts);
  const auto answer = LookAround<OutsideAnswer>(
      subject, [proc_root, question] { return LookOutside(proc_root, question); });
  if (!answer.has_value()) return;
  AddOutside(question, *answer, stack);
  SayIfCut(*answer);
  if (children) AddOthers(subject, question, stack);
}

void StackService::SayIfCut(const OutsideAnswer& answer) {
  if (!answer.locks.cut || !cut_.Take(options_.now_ns()).has_value()) return;
  spdlog::warn(
      "/proc/locks has more locks of files than the agent reads in a second: stacks may not "
      "name the holder of a lock; since the start: {} times",
      cut_.total());
}

// Ranks may wait for a process that is not a rank: a coordinator, a scheduler.
void StackService::AddOthers(const Subject& subject, const OutsideQuestion& question,
                             v1::ProcessStack* stack) {
  const std::string& proc_root = options_.proc_root;
  Starts starts;
  for (const pid_t pid : ListOthers(*stack, question)) {
    const auto found = LookAround<std::optional<Descendant>>(
        subject, [proc_root, pid] { return DescribeProcess(proc_root, pid); });
    if (!found.has_value() || !found->has_value()) continue;
    v1::ChildProcess other;
    AddProcess(**found, &other);
    starts[pid] = (*found)->start_time;
    const bool goes_on = AddChildStack(subject, starts[pid], &other);
    if (!other.threads().empty()) {
      LookForOtherThreads(subject, &other);
      *stack->add_others() = std::move(other);
    }
    if (!goes_on) break;
  }
  const OutsideQuestion of_others = AskOutsideOfOthers(*stack, question, starts);
  if (of_others.threads.empty()) return;
  const auto answer = LookAround<OutsideAnswer>(
      subject, [proc_root, of_others] { return LookOutside(proc_root, of_others); });
  if (!answer.has_value()) return;
  OutsideAnswer ends = *answer;
  ends.locks = {};  // they are the process's own
  AddOutside(of_others, ends, stack);
}

void StackService::AddChildStacks(const Subject& subject, const Starts& starts,
                                  v1::ProcessStack* stack) {
  const int64_t deadline_ns = options_.now_ns() + kChildrenTimeout;
  for (const int index : ChildrenToSample(*stack)) {
    if (options_.now_ns() > deadline_ns) return;
    v1::ChildProcess* child = stack->mutable_children(index);
    if (!AddChildStack(subject, starts.at(child->pid()), child)) return;
  }
}

// `started`: the process that was found. Later its number may be another one's. If false, try no
// further child.
bool StackService::AddChildStack(const Subject& subject, uint64_t started,
                                 v1::ChildProcess* child) {
  const auto look = [proc_root = options_.proc_root, of = subject.id.pid, parent = child->parent(),
                     pid = child->pid()] { return LookAtChild(proc_root, of, parent, pid); };
  const auto start_time = [&] {
    return threads_.Get<uint64_t>(absl::StrCat(child->pid()), look, kReadTimeout, subject.user)
        .value_or(0);
  };
  if (start_time() != started) return true;
  if (!allowance_->Take(subject.payer, options_.now_ns())) return false;
  auto taken = Sample({{child->pid(), started}, subject.payer, subject.user}, LimitsOfChildren(),
                      kChildrenTimeout);
  if (!taken.has_value()) return false;
  if (start_time() != started) return true;
  AddChildThreads(*std::move(taken), child);
  if (child->own_session()) LookForOtherThreads(subject, child);
  return true;
}

// A service may answer in threads of a library, which have no stacks here.
void StackService::LookForOtherThreads(const Subject& subject, v1::ChildProcess* child) {
  std::vector<pid_t> sampled;
  for (const v1::ThreadStack& thread : child->threads()) sampled.push_back(thread.tid());
  const auto look = [proc_root = options_.proc_root, pid = child->pid(), sampled] {
    return HidesAWait(proc_root, pid, sampled);
  };
  child->set_hides_a_wait(
      threads_.Get<bool>(absl::StrCat(child->pid()), look, kReadTimeout, subject.user)
          .value_or(true));
}

// The segment may lie on a file system that does not answer.
void StackService::AddNetwork(ProcessId process, const std::vector<uint64_t>& network_of,
                              v1::ProcessStack* stack) {
  if (network_of.empty() || options_.segment_of == nullptr) return;
  const ServedSegment segment = options_.segment_of(process);
  if (segment.reader == nullptr) return;
  const Subject subject = {process, {}, PayerOfReads(options_.proc_root, process.pid)};
  const auto read = LookAround<std::vector<v1::NetworkSample>>(
      subject, [segment, network_of] { return ReadNetworkSamples(segment, network_of); });
  if (!read.has_value()) return;
  stack->mutable_network()->Assign(read->begin(), read->end());
}

v1::ProcessStack StackService::TakeFrom(ProcessId process, bool children,
                                        const std::vector<uint64_t>& network_of) {
  const std::string& proc_root = options_.proc_root;
  const int64_t user = PayerOfReads(proc_root, process.pid);
  const auto seen = threads_.Get<Look>(
      absl::StrCat(process.pid), [proc_root, process] { return LookAt(proc_root, process); },
      kReadTimeout, user);
  if (!seen.has_value()) {
    return WithoutStacks(process, "reading the process in /proc timed out: no stacks taken");
  }
  if (!seen->is_alive) return WithoutStacks(process, "the process has ended");
  if (!allowance_->Take(seen->payer, options_.now_ns())) {
    return Refuse(process, absl::StrCat("the agent of this host takes the stacks of at most ",
                                        options_.max_per_minute, " processes a minute, and ",
                                        PayerInWords(user),
                                        " has had a share of them: no stacks taken; ask again "
                                        "later, or start rollcall-agent with a larger "
                                        "--max-stacks-per-minute"));
  }
  const Subject subject = {process, seen->payer, user};
  v1::ProcessStack stack = SampleAll(subject, children);
  AddNetwork(process, network_of, &stack);
  return stack;
}

v1::ProcessStack StackService::SampleAll(const Subject& subject, bool children) {
  auto stack = Sample(subject, TakeLimits(), StackPatience::kLongNs);
  if (!stack.has_value()) return WithoutStacks(subject.id, "taking the stacks timed out");
  const int64_t begun_ns = options_.now_ns(), sampled_before_ns = sampled_ns_;
  AddSurroundings(subject, children, &*stack);
  const int64_t sampled_ns = sampled_ns_ - sampled_before_ns;  // the stacks of children
  allowance_->Charge(subject.payer, options_.now_ns() - begun_ns - sampled_ns);
  Redact(*options_.redactor, &*stack);
  return *std::move(stack);
}

}  // namespace rollcall
