// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/pairs/joined_jobs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/durations.h"
#include "daemon/model/progress.h"
#include "interpose/mpi_world.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr int kMostParents = 8;
constexpr int64_t kClocksAgreeNs = kSecond;  // those of two hosts
constexpr uint64_t kOfPart = 0x70616972;     // keeps the ids of two jobs apart

// Whether the id is made of names and counts, so that an unrelated job may have it as well.
bool MayHaveTwin(const JobState& job, const Communicator& comm) {
  const Communicator* at = &comm;
  for (int i = 0; i < kMostParents; ++i) {
    if (HasCountedIds(at->kind) || at->name == segment::kMpiWorldName) return true;
    if (at->parent == 0) return false;
    const auto parent = job.communicators.find(at->parent);
    if (parent == job.communicators.end()) return true;
    at = &parent->second;
  }
  return true;
}

bool HasAPart(const Communicator& comm) {
  return comm.size > 1 && comm.size <= kMaxRanks && !comm.members.empty() &&
         comm.members.size() < static_cast<size_t>(comm.size);
}

bool HaveARankInCommon(const Communicator& a, const Communicator& b) {
  return std::any_of(a.members.begin(), a.members.end(),
                     [&b](const auto& entry) { return b.members.count(entry.first) != 0; });
}

// When all ranks were inside the creation.
struct Creation {
  int64_t last_entered_ns = 0;
  int64_t first_left_ns = INT64_MAX;
  bool is_known = true;

  void Add(const Communicator& comm) {
    for (const auto& [rank, member] : comm.members) {
      const bool is_ready = member.state == MemberState::kReady;
      is_known = is_known && is_ready && member.init_entered_ns != 0 && member.state_since_ns != 0;
      last_entered_ns = std::max(last_entered_ns, member.init_entered_ns);
      first_left_ns = std::min(first_left_ns, member.state_since_ns);
    }
  }
};

// Whether the two parts are one whole that was made at one time.
bool FitTogether(const Communicator& a, const Communicator& b) {
  if (a.members.size() + b.members.size() != static_cast<size_t>(a.size)) return false;
  Creation creation;
  creation.Add(a);
  creation.Add(b);
  return creation.is_known && creation.last_entered_ns <= creation.first_left_ns + kClocksAgreeNs;
}

// Returns the owner of the members' processes; -1 if unknown, or there are several.
int64_t OwnerOf(const JobState& job, const Communicator& comm) {
  int64_t owner = -1;
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    if (process == nullptr || process->uid < 0) return -1;
    if (owner >= 0 && owner != process->uid) return -1;
    owner = process->uid;
  }
  return owner;
}

bool IsShared(const JobState& a, const Communicator& of_a, const JobState& b,
              const Communicator& of_b) {
  if (!HasAPart(of_a) || !HasAPart(of_b)) return false;
  if (of_a.kind != of_b.kind || of_a.size != of_b.size) return false;
  if (HaveARankInCommon(of_a, of_b)) return false;
  // What another user's processes report is not a reason to blame them in this user's job.
  const int64_t owner = OwnerOf(a, of_a);
  if (owner < 0 || owner != OwnerOf(b, of_b)) return false;
  const bool may_be_twins = MayHaveTwin(a, of_a) || MayHaveTwin(b, of_b);
  return !may_be_twins || FitTogether(of_a, of_b);
}

// Returns one more than the highest number of a rank.
int32_t CountNumbers(const JobState& job) {
  int32_t count = 0;
  for (const Process& process : job.processes) {
    if (process.global_rank < 0 || process.global_rank >= kMaxRanks) continue;
    count = std::max({count, process.global_rank + 1, std::min(process.world_size, kMaxRanks)});
  }
  return count;
}

bool Lives(const JobState& job) {
  return std::any_of(job.processes.begin(), job.processes.end(),
                     [](const Process& process) { return !HasEnded(process); });
}

// Puts one more job into the joined state.
class Adder {
 public:
  // `first_rank`: the number of the job's rank 0 in the joined state.
  Adder(const JobState& job, int32_t first_rank, JoinedJobs* joined)
      : job_(job),
        to_(&joined->state),
        part_(joined->parts.size()),
        process_(static_cast<int32_t>(joined->state.processes.size())),
        agent_(static_cast<int32_t>(joined->state.agents.size())),
        rank_(first_rank) {
    joined->parts.push_back({job.key, joined->state.processes.size(), first_rank, Lives(job)});
  }

  void Run() {
    ChooseIds();
    to_->agents.insert(to_->agents.end(), job_.agents.begin(), job_.agents.end());
    to_->counts_from_ns = std::max(to_->counts_from_ns, job_.counts_from_ns);
    for (const auto& [host, facts] : job_.host_facts) to_->host_facts.emplace(host, facts);
    for (const Process& process : job_.processes) AddProcess(process);
    for (const auto& [id, comm] : job_.communicators) AddCommunicator(comm);
  }

 private:
  void ChooseIds() {
    for (const auto& [id, comm] : job_.communicators) {
      const auto known = to_->communicators.find(id);
      const bool is_free = known == to_->communicators.end();
      const bool keeps_id = is_free || IsShared(*to_, known->second, job_, comm);
      ids_[id] = keeps_id ? id : segment::Mix(segment::Mix(kOfPart, part_), id);
    }
  }

  // 0 and unknown ids stay as they are.
  uint64_t IdOf(uint64_t id) const {
    const auto at = ids_.find(id);
    return at == ids_.end() ? id : at->second;
  }

  int32_t ProcessOf(int32_t process) const { return process < 0 ? process : process + process_; }

  void AddProcess(const Process& process) {
    Process& added = to_->processes.emplace_back(process);
    if (added.agent >= 0) added.agent += agent_;
    if (added.global_rank >= 0) added.global_rank += rank_;
    // The communicator of its own world has other numbers than the ranks here.
    added.world_size = -1;
    added.standing = nullptr;
    for (BlockedCall& call : added.blocked) call.communicator = IdOf(call.communicator);
    if (added.network == nullptr) return;
    std::vector<NetworkSample> samples = *added.network;
    for (NetworkSample& sample : samples) {
      sample.communicator = IdOf(sample.communicator);
      sample.process = ProcessOf(sample.process);
    }
    added.network = std::make_shared<const std::vector<NetworkSample>>(std::move(samples));
  }

  void AddCommunicator(const Communicator& comm) {
    const auto [at, is_new] = to_->communicators.try_emplace(IdOf(comm.id));
    Communicator& to = at->second;
    if (is_new) {
      to = comm;
      to.id = at->first;
      to.parent = IdOf(comm.parent);
      for (auto& [rank, member] : to.members) member.process = ProcessOf(member.process);
      for (Rival& rival : to.rivals) rival.process = ProcessOf(rival.process);
      for (int32_t& process : to.seats) process = ProcessOf(process);
      return;
    }
    Merge(comm, &to);
  }

  void Merge(const Communicator& comm, Communicator* to) const {
    to->version = 0;  // nothing about the whole is maintained
    to->uses_p2p = to->uses_p2p || comm.uses_p2p;
    to->has_siblings = to->has_siblings || comm.has_siblings;
    to->counts_messages = to->counts_messages || comm.counts_messages;
    to->arrivals = {};
    if (to->name.empty()) to->name = comm.name;
    to->finish_seen_ns = std::max(to->finish_seen_ns, comm.finish_seen_ns);
    for (const auto& [rank, member] : comm.members) {
      Member& added = to->members[rank];
      added = member;
      added.process = ProcessOf(member.process);
    }
  }

  const JobState& job_;
  JobState* const to_;
  const size_t part_;
  const int32_t process_, agent_, rank_;  // where those of the job begin
  std::map<uint64_t, uint64_t> ids_;      // of its communicators, here
};

}  // namespace

std::vector<uint64_t> OpenCommunicators(const JobState& job) {
  std::vector<uint64_t> ids;
  for (const auto& [id, comm] : job.communicators) {
    if (HasAPart(comm)) ids.push_back(id);
  }
  return ids;
}

bool WaitsForKey(const JobState& job) {
  return std::any_of(job.processes.begin(), job.processes.end(), [](const Process& process) {
    return std::any_of(process.blocked.begin(), process.blocked.end(), [](const BlockedCall& call) {
      return call.op == Op::kstore_wait && !call.key.empty();
    });
  });
}

std::vector<uint64_t> SharedCommunicators(const JobState& a, const JobState& b) {
  std::vector<uint64_t> ids;
  for (const auto& [id, comm] : a.communicators) {
    const auto other = b.communicators.find(id);
    if (other != b.communicators.end() && IsShared(a, comm, b, other->second)) ids.push_back(id);
  }
  return ids;
}

int JoinedJobs::PartOf(int32_t process) const {
  if (process < 0 || static_cast<size_t>(process) >= state.processes.size()) return -1;
  size_t part = parts.size() - 1;
  while (parts[part].first_process > static_cast<size_t>(process)) --part;
  return static_cast<int>(part);
}

JoinedJobs JoinJobs(const JobState& first, const std::vector<JobState>& others) {
  JoinedJobs joined;
  joined.state = first;
  joined.parts.push_back({first.key, 0, 0, Lives(first)});
  for (Process& process : joined.state.processes) process.standing = nullptr;
  int32_t rank = CountNumbers(first);
  for (const JobState& other : others) {
    if (joined.state.processes.size() + other.processes.size() > kMostJoinedProcesses) continue;
    Adder(other, rank, &joined).Run();
    rank += CountNumbers(other);
  }
  return joined;
}

}  // namespace rollcall
