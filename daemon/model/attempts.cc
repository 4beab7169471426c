// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/attempts.h"

#include <algorithm>
#include <utility>

#include "daemon/model/attempt_room.h"

namespace rollcall {
namespace {

// A launcher's report comes from a job's environment. Higher numbers would leave none for the
// attempts after it.
constexpr int32_t kHighestFromLauncher = 1'000'000'000;
// /proc rounds the start of a process down to a hundredth of a second.
constexpr int64_t kStartSlackNs = 20'000'000;

bool Differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

bool Differ(int32_t a, int32_t b) { return a >= 0 && b >= 0 && a != b; }

}  // namespace

int32_t Attempts::Place(const ProcessStart& start) {
  const auto placed = placed_.find(start.process);
  if (placed != placed_.end()) {
    SetReturned(start.process, Find(placed->second));
    if (start.uses_nccl) SetUsesNccl(start.process);
    return placed->second;
  }
  bool has_twin = false;
  Attempt* chosen = nullptr;
  for (auto at = attempts_.rbegin(); at != attempts_.rend() && chosen == nullptr; ++at) {
    const Fit fit = Fits(*at, start);
    if (fit == Fit::kYes) chosen = &*at;
    has_twin = has_twin || fit == Fit::kRankIsAlive;
  }
  if (chosen == nullptr) chosen = Begin(start, has_twin);
  Add(start, chosen);
  placed_[start.process] = chosen->number;
  return chosen->number;
}

bool Attempts::IsTooEarly(const ProcessStart& start) const {
  if (start.uses_nccl || start.rank < 0 || placed_.count(start.process) != 0) return false;
  return std::any_of(attempts_.begin(), attempts_.end(), [&start](const Attempt& attempt) {
    const auto holder = attempt.holders.find(start.rank);
    if (holder == attempt.holders.end() || Fits(attempt, start) != Fit::kYes) return false;
    const Member& known = attempt.members.at(holder->second);
    return IsAlive(known) || known.ended_after_ns <= start.started_ns;
  });
}

Attempts::Fit Attempts::Fits(const Attempt& attempt, const ProcessStart& start) {
  if (SharesCommunicator(attempt, start)) return Fit::kYes;
  const Fit rank = FitsRank(attempt, start);
  if (rank != Fit::kYes) return rank;
  const bool is_other = Differ(attempt.restarts, start.restarts) ||
                        Differ(attempt.launch, start.launch) || IsOfOtherWorld(attempt, start);
  return is_other ? Fit::kNo : Fit::kYes;
}

bool Attempts::SharesCommunicator(const Attempt& attempt, const ProcessStart& start) {
  if (attempt.alive == 0 || Differ(attempt.user, start.user)) return false;
  return std::any_of(start.communicators.begin(), start.communicators.end(),
                     [&attempt](uint64_t id) { return attempt.communicators.count(id) != 0; });
}

// The ranks of one launch may have got different sizes. When a launcher starts the ranks again with
// another size, it gives them numbers that others had, or that are new in that size.
bool Attempts::IsOfOtherWorld(const Attempt& attempt, const ProcessStart& start) {
  if (!Differ(attempt.world_size, start.world_size)) return false;
  bool is_had = false;
  for (const auto& [process, member] : attempt.members) {
    if (start.rank < 0 || member.rank != start.rank) continue;
    if (!Differ(member.world_size, start.world_size)) return false;  // its child
    is_had = true;
  }
  if (is_had || start.rank < 0 || attempt.alive == 0 || !IsSameLaunch(attempt, start)) return true;
  const int64_t apart_ns =
      std::max(start.started_ns - attempt.began_ns, attempt.began_ns - start.started_ns);
  return start.rank >= attempt.world_size && apart_ns > kTogetherNs;
}

bool Attempts::IsSameLaunch(const Attempt& attempt, const ProcessStart& start) {
  return !attempt.launch.empty() && attempt.launch == start.launch;
}

bool Attempts::HasHadRank(const Attempt& attempt, int32_t rank) {
  return std::any_of(attempt.members.begin(), attempt.members.end(),
                     [rank](const auto& entry) { return entry.second.rank == rank; });
}

// Used for a process whose rank no process that uses NCCL has had.
Attempts::Fit Attempts::FitsUnheldRank(const Attempt& attempt, const ProcessStart& start) {
  const int64_t slack_ns = attempt.last_end_host == start.process.host ? 0 : kClockSlackNs;
  const bool is_over = attempt.alive == 0 && attempt.last_end_ns != 0 &&
                       attempt.last_end_ns + slack_ns < start.started_ns;
  if (!is_over) return Fit::kYes;
  // The last of one launch may start after the first have failed.
  const bool may_be_late = IsSameLaunch(attempt, start) &&
                           start.started_ns - attempt.last_end_ns <= kLateNs &&
                           !(start.rank >= 0 && HasHadRank(attempt, start.rank));
  return may_be_late ? Fit::kYes : Fit::kNo;
}

Attempts::Fit Attempts::FitsRank(const Attempt& attempt, const ProcessStart& start) {
  const auto holder = attempt.holders.find(start.rank);
  if (start.rank < 0 || holder == attempt.holders.end()) return FitsUnheldRank(attempt, start);
  const Member& known = attempt.members.at(holder->second);
  // Its process has a rank of its own, so this is another start. No agent may have reported the end
  // of the awaited process.
  if (known.is_awaited && start.uses_nccl) return Fit::kNo;
  // A child process inherits the rank of its parent, and everything else.
  if (IsAlive(known)) {
    const bool may_be_child =
        IsSameLaunch(attempt, start) && holder->second.host == start.process.host;
    return start.uses_nccl && !may_be_child ? Fit::kRankIsAlive : Fit::kYes;
  }
  if (start.may_rejoin && attempt.alive != 0) return Fit::kYes;
  const int64_t ended_ns = start.uses_nccl ? known.ended_after_ns : known.ended_by_ns;
  return ended_ns <= start.started_ns ? Fit::kNo : Fit::kYes;
}

Attempts::Attempt* Attempts::Begin(const ProcessStart& start, bool has_twin) {
  Attempt attempt;
  const int32_t next = attempts_.empty() ? 0 : attempts_.back().number + 1;
  attempt.number = std::max(std::min(start.attempt, kHighestFromLauncher), next);
  attempt.has_twin = has_twin;
  attempt.user = start.user;
  attempt.began_ns = start.started_ns;
  MakeRoom();
  attempts_.push_back(std::move(attempt));
  return &attempts_.back();
}

// Forgets an old attempt if there is no room for one more.
void Attempts::MakeRoom() {
  if (attempts_.size() < kKept) return;
  std::vector<HeldAttempt> held;
  for (const Attempt& attempt : attempts_) {
    held.push_back({attempt.number, attempt.user, attempt.alive > 0});
  }
  Forget(MakesRoom(held));
}

void Attempts::Add(const ProcessStart& start, Attempt* attempt) {
  if (attempt->restarts.empty()) attempt->restarts = start.restarts;
  if (attempt->launch.empty()) attempt->launch = start.launch;
  if (attempt->world_size < 0) attempt->world_size = start.world_size;
  Member& member = attempt->members[start.process];
  member.rank = start.rank;
  member.world_size = start.world_size;
  member.uses_nccl = start.uses_nccl;
  if (start.rank >= 0) ++attempt->alive;
  if (start.rank >= 0 && start.uses_nccl) Hold(start.rank, start.process, attempt);
  Remember(start.communicators, attempt);
}

// Of two living processes with one rank the first one keeps it.
void Attempts::Hold(int32_t rank, const ProcessKey& process, Attempt* attempt) {
  const auto holder = attempt->holders.find(rank);
  if (holder != attempt->holders.end() && IsAlive(attempt->members[holder->second])) return;
  attempt->holders[rank] = process;
}

void Attempts::Remember(const std::vector<uint64_t>& communicators, Attempt* attempt) {
  for (const uint64_t id : communicators) {
    if (attempt->communicators.size() < kCommunicators) attempt->communicators.insert(id);
  }
}

void Attempts::AddCommunicators(const ProcessKey& process, const std::vector<uint64_t>& ids) {
  const auto placed = placed_.find(process);
  Attempt* attempt = placed == placed_.end() ? nullptr : Find(placed->second);
  if (attempt != nullptr) Remember(ids, attempt);
}

void Attempts::SetEnded(const ProcessKey& process, int64_t after_ns, int64_t by_ns) {
  const auto placed = placed_.find(process);
  Attempt* attempt = placed == placed_.end() ? nullptr : Find(placed->second);
  if (attempt == nullptr) return;
  Member& member = attempt->members[process];
  if (!IsAlive(member)) return;
  member.ended_by_ns = std::max<int64_t>(by_ns, 1);
  member.ended_after_ns =
      after_ns == 0 ? member.ended_by_ns : std::min(after_ns - kStartSlackNs, member.ended_by_ns);
  if (member.rank < 0) return;
  --attempt->alive;
  if (member.ended_by_ns < attempt->last_end_ns) return;
  attempt->last_end_ns = member.ended_by_ns;
  attempt->last_end_host = process.host;
}

bool Attempts::SetUsesNccl(const ProcessKey& process) {
  const auto placed = placed_.find(process);
  Attempt* attempt = placed == placed_.end() ? nullptr : Find(placed->second);
  if (attempt == nullptr) return false;
  Member& member = attempt->members[process];
  if (member.uses_nccl) return false;
  member.uses_nccl = true;
  if (member.rank >= 0) attempt->holders.emplace(member.rank, process);
  return true;
}

void Attempts::Restore(int32_t number, const AttemptFacts& facts) {
  Attempt attempt;
  attempt.number = number;
  attempt.world_size = facts.world_size;
  attempt.restarts = facts.restarts;
  attempt.launch = facts.launch;
  attempt.has_twin = facts.has_twin;
  for (const AttemptFacts::Member& member : facts.members) {
    if (!placed_.emplace(member.process, number).second) continue;
    Member& restored = attempt.members[member.process];
    restored.rank = member.rank;
    restored.uses_nccl = restored.is_awaited = true;
    if (member.rank >= 0) attempt.holders[member.rank] = member.process;
  }
  MakeRoom();
  attempts_.push_back(std::move(attempt));
}

void Attempts::SetReturned(const ProcessKey& process, Attempt* attempt) {
  if (attempt == nullptr) return;
  Member& member = attempt->members[process];
  if (std::exchange(member.is_awaited, false) && member.rank >= 0) ++attempt->alive;
}

AttemptFacts Attempts::FactsOf(const Attempt& attempt) {
  return {attempt.world_size, attempt.restarts, attempt.launch, attempt.has_twin, {}};
}

AttemptFacts Attempts::FactsOf(int32_t number) const {
  const auto at =
      std::find_if(attempts_.begin(), attempts_.end(),
                   [number](const Attempt& attempt) { return attempt.number == number; });
  return at == attempts_.end() ? AttemptFacts() : FactsOf(*at);
}

std::map<int32_t, AttemptFacts> Attempts::AllFacts() const {
  std::map<int32_t, AttemptFacts> all;
  for (const Attempt& attempt : attempts_) {
    AttemptFacts& facts = all.emplace(attempt.number, FactsOf(attempt)).first->second;
    for (const auto& [process, member] : attempt.members) {
      if (member.uses_nccl) facts.members.push_back({process, member.rank});
    }
  }
  return all;
}

void Attempts::Forget(int32_t number) {
  Attempt* attempt = Find(number);
  if (attempt == nullptr) return;
  for (const auto& [process, member] : attempt->members) placed_.erase(process);
  attempts_.erase(attempts_.begin() + (attempt - attempts_.data()));
}

bool Attempts::HasTwin(int32_t number) const {
  return std::any_of(attempts_.begin(), attempts_.end(), [number](const Attempt& attempt) {
    return attempt.number == number && attempt.has_twin;
  });
}

Attempts::Attempt* Attempts::Find(int32_t number) {
  const auto at =
      std::find_if(attempts_.begin(), attempts_.end(),
                   [number](const Attempt& attempt) { return attempt.number == number; });
  return at == attempts_.end() ? nullptr : &*at;
}

}  // namespace rollcall
