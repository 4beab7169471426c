// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/verdict_sites.h"

#include <algorithm>
#include <string>
#include <unordered_set>

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

// The site of a culprit's last call, for a culprit that has not made the call.
std::string LastSite(const JobState& job, const Member* member) {
  if (member == nullptr || member->records.empty()) return "";
  return RecordSite(job, member, member->records.end() - 1);
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

}  // namespace

void AddCallSites(const JobState& job, Verdict* verdict) {
  const auto comm = job.communicators.find(verdict->communicator);
  if (comm == job.communicators.end() || verdict->culprits.empty()) return;
  const MembersByProcess members(comm->second);
  const Member* others = FirstWaiting(members, *verdict);
  if (others == nullptr) others = AnyOther(comm->second, *verdict);
  if (!AnyHasSites(job, *verdict) && (others == nullptr || !HasSites(job, others->process))) return;
  verdict->site = SiteAt(job, others, verdict->position);
  const uint64_t position = CulpritPosition(*verdict);
  for (Culprit& culprit : verdict->culprits) {
    const Member* member = members.Find(culprit.process);
    culprit.site = culprit.call.op == Op::kNone ? LastSite(job, member)
                                                : SiteAt(job, member, position);
  }
  const Culprit& first = verdict->culprits.front();
  AddHistorySites(job, others, members.Find(first.process), verdict);
  if (!first.site.empty()) {
    verdict->evidence.push_back(absl::StrCat("rank ", first.rank,
                                             first.call.op == Op::kNone ? " made its last call at "
                                                                        : " made its call at ",
                                             first.site));
  }
  if (!verdict->site.empty()) {
    verdict->evidence.push_back(absl::StrCat("the other ranks made their call at ", verdict->site));
  }
}

}  // namespace rollcall
