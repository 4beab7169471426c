// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/life/stack_plan.h"

#include <algorithm>

#include "base/durations.h"
#include "daemon/diagnosis/life/incident_ranks.h"
#include "daemon/diagnosis/members_by_process.h"
#include "daemon/diagnosis/network_evidence.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr int64_t kPortionsApartNs = kSecond;
constexpr size_t kWaitingStacks = 4;
// Members of a call that stands still in flight, which an incident lists with two samples: between
// these their transfers move, or not.
constexpr size_t kStalledStacks = 32;

bool CanTakeStack(const JobState& state, int32_t process) {
  return FindProcess(state, process) != nullptr && !HasEnded(state, process);
}

// Live processes, each once, in the order in which they are added.
class Processes {
 public:
  explicit Processes(const JobState& state) : state_(state), known_(state.processes.size()) {}

  void Add(int32_t process) {
    if (!CanTakeStack(state_, process) || known_[static_cast<size_t>(process)]) return;
    known_[static_cast<size_t>(process)] = true;
    list_.push_back(process);
  }

  const std::vector<int32_t>& list() const { return list_; }

 private:
  const JobState& state_;
  std::vector<bool> known_;  // by process
  std::vector<int32_t> list_;
};

// Returns the processes of a communicator, by rank.
std::vector<int32_t> MembersOf(const JobState& state, uint64_t communicator) {
  std::vector<int32_t> processes;
  const auto comm = state.communicators.find(communicator);
  if (comm == state.communicators.end()) return processes;
  for (const auto& [rank, member] : comm->second.members) processes.push_back(member.process);
  return processes;
}

// The culprits of all verdicts, or an even sample of kPortion of them, a few waiting ranks, and
// some members of calls that stand still in flight.
std::vector<int32_t> WorthAStack(const JobState& state, const std::vector<Verdict>& verdicts) {
  Processes worth(state);
  for (const Verdict& v : verdicts) {
    for (const Culprit& culprit : v.culprits) worth.Add(culprit.process);
  }
  const size_t culprits = worth.list().size();
  for (const Verdict& v : verdicts) {
    for (const int32_t process : v.waiting_processes) {
      if (worth.list().size() < culprits + kWaitingStacks) worth.Add(process);
    }
  }
  for (const uint64_t communicator : StalledCommunicators(verdicts)) {
    for (const int32_t process : MembersOf(state, communicator)) {
      if (worth.list().size() < culprits + kStalledStacks) worth.Add(process);
    }
  }
  const std::vector<int32_t>& all = worth.list();
  const size_t step =
      std::max<size_t>(1, (culprits + StackPlan::kPortion - 1) / StackPlan::kPortion);
  std::vector<int32_t> result;
  for (size_t i = 0; i < culprits; i += step) result.push_back(all[i]);
  for (size_t i = culprits; i < all.size(); ++i) result.push_back(all[i]);
  return result;
}

// Culprits, and a few that wait, which have come to their call since their last sample.
void AddSampledBefore(const JobState& state, const Verdict& v, std::set<int32_t>* processes) {
  const auto comm = state.communicators.find(v.communicator);
  if (!IsContradiction(v.cause) || comm == state.communicators.end()) return;
  const MembersByProcess members(comm->second);
  const auto add = [&](int32_t index) {
    const Process* process = FindProcess(state, index);
    const Member* member = members.Find(index);
    if (processes->size() == StackPlan::kPortion) return;
    if (process == nullptr || member == nullptr || !CanTakeStack(state, index)) return;
    const bool is_older = process->stacks_ns < member->waiting_since_ns;
    if (process->stacks_ns != 0 && is_older) processes->insert(index);
  };
  for (const Culprit& culprit : v.culprits) add(culprit.process);
  for (size_t i = 0; i < std::min(kWaitingStacks, v.waiting_processes.size()); ++i) {
    add(v.waiting_processes[i]);
  }
}

// A request may come to a server that idles, and its handler may hang. What moves may come to its
// end, or hang.
bool MayChange(const std::vector<Verdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& v) { return v.is_idle || v.outside_moved; });
}

}  // namespace

std::vector<int32_t> StackPlan::First(const JobState& state, const std::vector<Verdict>& verdicts,
                                      int64_t now_ns) {
  taken_ = WorthAStack(state, verdicts);
  has_turn_ = {taken_.begin(), taken_.end()};
  AddStalled(state, verdicts);
  taken_ns_ = taken_.empty() ? 0 : now_ns;
  rest_next_ns_ = transfers_next_ns_ = now_ns;
  return taken_;
}

std::vector<int32_t> StackPlan::New(const JobState& state, const std::vector<Verdict>& verdicts,
                                    int64_t now_ns) {
  // Ranks that wait now may have been running when the first stacks were taken.
  std::vector<int32_t> fresh = WorthAStack(state, verdicts);
  fresh.erase(std::remove_if(fresh.begin(), fresh.end(),
                             [&](int32_t process) { return !has_turn_.insert(process).second; }),
              fresh.end());
  std::set<int32_t> again = AddStalled(state, verdicts);
  for (const Verdict& v : verdicts) AddSampledBefore(state, v, &again);
  for (const int32_t process : fresh) again.erase(process);
  taken_.insert(taken_.end(), fresh.begin(), fresh.end());
  if (!fresh.empty()) taken_ns_ = now_ns;
  fresh.insert(fresh.end(), again.begin(), again.end());
  return fresh;
}

std::vector<int32_t> StackPlan::Again(const JobState& state, const std::vector<Verdict>& verdicts,
                                      int64_t now_ns, const Limits& limits) {
  const bool may_change = MayChange(verdicts);
  if (may_change && taken_ns_ == 0) taken_ns_ = now_ns;
  const int64_t apart_ns = std::max(apart_ns_, limits.stacks_apart_ns);
  if (taken_ns_ == 0 || now_ns - taken_ns_ < apart_ns) return {};
  taken_ns_ = may_change ? now_ns : 0;
  // A server may idle all night.
  apart_ns_ = may_change ? std::min(2 * apart_ns, limits.hang_after_ns / 2) : 0;
  std::vector<int32_t> alive;
  for (const int32_t process : taken_) {
    if (CanTakeStack(state, process)) alive.push_back(process);
  }
  return alive;
}

// Notes the communicators whose call now stands still in flight, and which processes are to be
// asked for the transfers: neighbours, since these lead from rank to rank. Returns the new ones'
// processes that were asked for their stacks before, without their transfers.
std::set<int32_t> StackPlan::AddStalled(const JobState& state,
                                        const std::vector<Verdict>& verdicts) {
  std::set<int32_t> asked_before;
  for (const uint64_t communicator : StalledCommunicators(verdicts)) {
    if (!stalled_.insert(communicator).second) continue;
    for (const int32_t process : MembersOf(state, communicator)) {
      if (has_turn_.count(process) != 0) {
        asked_before.insert(process);
        continue;
      }
      if (has_transfers_.size() >= kMostTransfers) continue;
      const bool has_room = has_transfers_.size() < kMostOfRest;
      if (!has_transfers_.insert(process).second) continue;
      (has_room ? members_ : for_transfers_).push_back(process);
    }
  }
  return asked_before;
}

std::vector<int32_t> StackPlan::NextMembers(const JobState& state) {
  std::vector<int32_t> portion;
  for (; !members_.empty() && portion.size() < kPortion; members_.pop_front()) {
    const int32_t process = members_.front();
    if (has_turn_.count(process) == 0 && CanTakeStack(state, process)) portion.push_back(process);
  }
  return portion;
}

std::vector<int32_t> StackPlan::Rest(const JobState& state, int64_t now_ns) {
  const bool is_done = members_.empty() && rest_next_ >= state.processes.size();
  if (is_done || now_ns < rest_next_ns_) return {};
  rest_next_ns_ = now_ns + kPortionsApartNs;
  std::vector<int32_t> portion = NextMembers(state);
  if (!portion.empty()) return portion;
  const size_t step = (state.processes.size() + kMostOfRest - 1) / kMostOfRest;
  for (; rest_next_ < state.processes.size() && portion.size() < kPortion; rest_next_ += step) {
    const auto process = static_cast<int32_t>(rest_next_);
    if (!state.processes[rest_next_].has_segment) continue;
    if (has_turn_.count(process) != 0 || has_transfers_.count(process) != 0) continue;
    if (CanTakeStack(state, process)) portion.push_back(process);
  }
  return portion;
}

std::vector<int32_t> StackPlan::Transfers(const JobState& state, int64_t now_ns) {
  std::vector<int32_t> portion;
  if (now_ns < transfers_next_ns_) return portion;
  transfers_next_ns_ = now_ns + kPortionsApartNs;
  for (; !for_transfers_.empty() && portion.size() < kTransfersPortion;
       for_transfers_.pop_front()) {
    const int32_t process = for_transfers_.front();
    if (has_turn_.count(process) == 0 && CanTakeStack(state, process)) portion.push_back(process);
  }
  return portion;
}

}  // namespace rollcall
