// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/incident_stacks.h"

#include <algorithm>
#include <utility>

#include "base/durations.h"
#include "daemon/diagnosis/incident_ranks.h"
#include "daemon/diagnosis/network_evidence.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr int64_t kPortionsApartNs = kSecond;
constexpr size_t kWaitingStacks = 4;
// Members of a call that stands still in flight, which an incident lists with two samples: between
// these their transfers move, or not.
constexpr size_t kStalledStacks = 32;
// Processes. The stacks of a portion take about 20 MB, from a few dozen hosts.
constexpr size_t kPortion = 256;
constexpr size_t kMostOfRest = 4096;

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
  const size_t step = std::max<size_t>(1, (culprits + kPortion - 1) / kPortion);
  std::vector<int32_t> result;
  for (size_t i = 0; i < culprits; i += step) result.push_back(all[i]);
  for (size_t i = culprits; i < all.size(); ++i) result.push_back(all[i]);
  return result;
}

}  // namespace

std::vector<int32_t> IncidentStacks::Open(const JobState& state,
                                          const std::vector<Verdict>& verdicts, int64_t now_ns) {
  asked_ = WorthAStack(state, verdicts);
  has_stacks_ = {asked_.begin(), asked_.end()};
  AddStalled(state, verdicts);
  taken_ns_ = asked_.empty() ? 0 : now_ns;
  rest_next_ns_ = now_ns;
  return asked_;
}

// Notes the communicators whose call now stands still in flight, and who is to be asked for the
// transfers: neighbours, since these lead from rank to rank. Returns the new ones' processes that
// were asked for their stacks before, without their transfers.
std::set<int32_t> IncidentStacks::AddStalled(const JobState& state,
                                             const std::vector<Verdict>& verdicts) {
  std::set<int32_t> asked_before;
  for (const uint64_t communicator : StalledCommunicators(verdicts)) {
    if (!stalled_.insert(communicator).second) continue;
    for (const int32_t process : MembersOf(state, communicator)) {
      if (has_stacks_.count(process) != 0) {
        asked_before.insert(process);
      } else if (has_network_.size() < kMostOfRest && has_network_.insert(process).second) {
        network_.push_back(process);
      }
    }
  }
  return asked_before;
}

std::vector<int32_t> IncidentStacks::NextOfNetwork(const JobState& state) {
  std::vector<int32_t> portion;
  for (; !network_.empty() && portion.size() < kPortion; network_.pop_front()) {
    const int32_t process = network_.front();
    if (has_stacks_.count(process) == 0 && CanTakeStack(state, process)) portion.push_back(process);
  }
  return portion;
}

// The next portion of a sample of at most kMostOfRest processes, spread evenly over the job.
std::vector<int32_t> IncidentStacks::NextOfRest(const JobState& state) {
  std::vector<int32_t> portion = NextOfNetwork(state);
  if (!portion.empty()) return portion;
  const size_t step = (state.processes.size() + kMostOfRest - 1) / kMostOfRest;
  for (; rest_next_ < state.processes.size() && portion.size() < kPortion; rest_next_ += step) {
    const auto process = static_cast<int32_t>(rest_next_);
    if (!state.processes[rest_next_].has_segment) continue;
    if (has_stacks_.count(process) != 0 || has_network_.count(process) != 0) continue;
    if (CanTakeStack(state, process)) portion.push_back(process);
  }
  return portion;
}

std::optional<std::vector<int32_t>> IncidentStacks::AskAgain(const JobState& state,
                                                             const std::vector<Verdict>& verdicts,
                                                             int64_t now_ns, const Limits& limits) {
  // A request may come to a server that idles, and its handler may hang. What moves may come to its
  // end, or hang.
  const bool may_change = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) {
    return v.is_idle || v.outside_moved;
  });
  if (may_change && taken_ns_ == 0) taken_ns_ = now_ns;
  const int64_t apart_ns = std::max(apart_ns_, limits.stacks_apart_ns);
  if (taken_ns_ == 0 || now_ns - taken_ns_ < apart_ns) return std::nullopt;
  taken_ns_ = may_change ? now_ns : 0;
  // A server may idle all night.
  apart_ns_ = may_change ? std::min(2 * apart_ns, limits.hang_after_ns / 2) : 0;
  std::vector<int32_t> alive;
  for (const int32_t process : asked_) {
    if (CanTakeStack(state, process)) alive.push_back(process);
  }
  return alive;
}

IncidentStacks::Due IncidentStacks::Ask(const JobState& state, const std::vector<Verdict>& verdicts,
                                        int64_t now_ns, const Limits& limits) {
  Due due;
  due.again = AskAgain(state, verdicts, now_ns, limits);
  const bool is_done = network_.empty() && rest_next_ >= state.processes.size();
  if (is_done || now_ns < rest_next_ns_) return due;
  rest_next_ns_ = now_ns + kPortionsApartNs;
  due.rest = NextOfRest(state);
  return due;
}

std::vector<int32_t> IncidentStacks::Update(const JobState& state,
                                            const std::vector<Verdict>& verdicts, int64_t now_ns) {
  // Ranks that wait now may have been running when the first stacks were taken.
  std::vector<int32_t> fresh = WorthAStack(state, verdicts);
  fresh.erase(std::remove_if(fresh.begin(), fresh.end(),
                             [&](int32_t process) { return !has_stacks_.insert(process).second; }),
              fresh.end());
  std::set<int32_t> again = AddStalled(state, verdicts);
  for (const int32_t process : fresh) again.erase(process);
  asked_.insert(asked_.end(), fresh.begin(), fresh.end());
  if (!fresh.empty()) taken_ns_ = now_ns;
  fresh.insert(fresh.end(), again.begin(), again.end());
  return fresh;
}

}  // namespace rollcall
