// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/verdict_sites.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/members_by_process.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

bool HasSites(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known != nullptr && !known->sites.empty();
}

bool AnyHasSites(const JobState& job, const Verdict& verdict) {
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                     [&](const Culprit& culprit) { return HasSites(job, culprit.process); }) ||
         std::any_of(verdict.waiting_processes.begin(), verdict.waiting_processes.end(),
                     [&](int32_t process) { return HasSites(job, process); });
}

std::string RecordSite(const JobState& job, const Member* member, const CallRecord* record) {
  if (member == nullptr || record == nullptr || record->site == 0) return "";
  const Process* process = FindProcess(job, member->process);
  if (process == nullptr || record->site > process->sites.size()) return "";
  return process->sites[record->site - 1];
}

std::string SiteAt(const JobState& job, const Member* member, uint64_t position) {
  return member == nullptr ? "" : RecordSite(job, member, FindCollective(*member, position));
}

// The site of a rank's last call on the communicator.
std::string LastSite(const JobState& job, const Member* member) {
  if (member == nullptr || member->records.empty()) return "";
  return RecordSite(job, member, member->records.end() - 1);
}

// The member's newest record for which `is_meant` is true.
template <typename Predicate>
const CallRecord* FindNewest(const Member* member, Predicate is_meant) {
  const CallRecord* newest = nullptr;
  if (member == nullptr) return newest;
  for (const CallRecord& record : member->records) {
    if (is_meant(record)) newest = &record;
  }
  return newest;
}

// The site of a call. Sends and receives have no position of their own.
std::string CallSite(const JobState& job, const Member* member, const CallArgs& call,
                     uint64_t position) {
  if (OpKind(call.op) != CallKind::kP2p) return SiteAt(job, member, position);
  return RecordSite(job, member, FindNewest(member, [&](const CallRecord& record) {
                      return record.args.op == call.op && record.args.peer == call.peer;
                    }));
}

std::string RefusedSite(const JobState& job, const Member* member, int32_t result) {
  return RecordSite(job, member, FindNewest(member, [&](const CallRecord& record) {
                      return record.result == result;
                    }));
}

const Member* FirstWaiting(const MembersByProcess& members, const Verdict& verdict) {
  for (const int32_t process : verdict.waiting_processes) {
    const Member* member = members.Find(process);
    if (member != nullptr) return member;
  }
  return nullptr;
}

// The first member that is not a culprit. In a job that makes progress no rank waits.
const Member* AnyOther(const Communicator& comm, const Verdict& verdict) {
  std::unordered_set<int32_t> culprits;
  for (const Culprit& culprit : verdict.culprits) culprits.insert(culprit.process);
  for (const auto& [rank, member] : comm.members) {
    if (culprits.count(member.process) == 0) return &member;
  }
  return nullptr;
}

void AddHistorySites(const JobState& job, const Member* others, const Member* culprit,
                     Verdict* verdict) {
  for (AlignedCall& line : verdict->histories) {
    if (line.others.op != Op::kNone) line.others_site = SiteAt(job, others, line.position);
    if (line.culprits.op != Op::kNone) {
      line.culprits_site = SiteAt(job, culprit, line.culprit_position);
    }
  }
}

// The position of the culprit's call: an extra or a skipped call shifts the positions.
uint64_t CulpritPosition(const Verdict& verdict) {
  for (const AlignedCall& line : verdict.histories) {
    if (line.position == verdict.position && line.culprits.op != Op::kNone) {
      return line.culprit_position;
    }
  }
  return verdict.position;
}

// The sites of the calls in which the ranks of a cycle wait.
class WaitSites {
 public:
  WaitSites(const JobState& job, const std::vector<WaitEdge>& chain) : job_(job) {
    for (const WaitEdge& edge : chain) {
      for (const int32_t rank : edge.from) edges_.emplace(rank, &edge);
      const auto comm = job.communicators.find(edge.communicator);
      if (comm != job.communicators.end()) members_.try_emplace(comm->first, comm->second);
    }
  }

  std::string Of(const Culprit& culprit) const {
    // The edges name the ranks of their communicators where no other number is known.
    const Process* process = FindProcess(job_, culprit.process);
    if (process == nullptr || process->global_rank < 0) return "";
    const auto found = edges_.find(culprit.rank);
    if (found == edges_.end()) return "";
    const WaitEdge& edge = *found->second;
    const auto members = members_.find(edge.communicator);
    if (members == members_.end()) return "";
    return CallSite(job_, members->second.Find(culprit.process), edge.call, edge.position);
  }

 private:
  const JobState& job_;
  std::unordered_map<int32_t, const WaitEdge*> edges_;  // by rank
  std::map<uint64_t, MembersByProcess> members_;
};

std::string CulpritSite(const JobState& job, const Verdict& verdict, const Culprit& culprit,
                        const Member* member, uint64_t position) {
  if (IsSiteOfLastCall(verdict, culprit)) return LastSite(job, member);
  if (verdict.cause == Cause::kNcclError) return RefusedSite(job, member, culprit.nccl_result);
  const CallArgs& call = culprit.call.op == Op::kNone ? verdict.call : culprit.call;
  return CallSite(job, member, call, position);
}

void FindCulpritSites(const JobState& job, const MembersByProcess& members, Verdict* verdict) {
  if (verdict->cause == Cause::kDeadlock) {
    const WaitSites waits(job, verdict->chain);
    for (Culprit& culprit : verdict->culprits) culprit.site = waits.Of(culprit);
    return;
  }
  const uint64_t position = CulpritPosition(*verdict);
  for (Culprit& culprit : verdict->culprits) {
    culprit.site = CulpritSite(job, *verdict, culprit, members.Find(culprit.process), position);
  }
}

}  // namespace

void FindCallSites(const JobState& job, Verdict* verdict) {
  const auto comm = job.communicators.find(verdict->communicator);
  if (comm == job.communicators.end() || verdict->culprits.empty()) return;
  const MembersByProcess members(comm->second);
  const Member* others = FirstWaiting(members, *verdict);
  if (others == nullptr) others = AnyOther(comm->second, *verdict);
  if (!AnyHasSites(job, *verdict) && (others == nullptr || !HasSites(job, others->process))) return;
  verdict->site = others == nullptr ? "" : CallSite(job, others, verdict->call, verdict->position);
  FindCulpritSites(job, members, verdict);
  AddHistorySites(job, others, members.Find(verdict->culprits.front().process), verdict);
}

void DescribeCallSites(Verdict* verdict) {
  if (verdict->culprits.empty()) return;
  const Culprit& first = verdict->culprits.front();
  if (!first.site.empty()) {
    verdict->evidence.push_back(absl::StrCat(
        "rank ", first.rank,
        IsSiteOfLastCall(*verdict, first) ? " made its last call at " : " made its call at ",
        first.site));
  }
  if (!verdict->site.empty()) {
    verdict->evidence.push_back(absl::StrCat("the other ranks made their call at ", verdict->site));
  }
}

bool IsSiteOfLastCall(const Verdict& verdict, const Culprit& culprit) {
  const Cause cause = verdict.cause;
  const bool is_inside = cause == Cause::kDeadlock || cause == Cause::kBlockedBeforeStart ||
                         cause == Cause::kStalledInFlight;
  return culprit.call.op == Op::kNone && !is_inside;
}

}  // namespace rollcall
