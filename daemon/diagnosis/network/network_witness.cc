// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/network/network_witness.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/hosts/host_signs.h"
#include "daemon/model/progress.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/host_fact_words.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// A message of a dead link comes this long before the wait at most.
constexpr int64_t kDiesBeforeWaitNs = 10 * kSecond;

// What no busy network causes, and no program.
constexpr HostFactKind kDeadLinks[] = {HostFactKind::kLinkDown, HostFactKind::kIbPort,
                                       HostFactKind::kNicError};

std::string ErrorOf(const JobState& job, const Communicator& comm, int32_t rank) {
  const Member* member = FindMember(comm, rank);
  if (member == nullptr || member->async_error == 0) return "";
  return absl::StrCat("rank ", PublicRank(job, member->process, rank), ": NCCL has reported ",
                      ResultInWords(member->async_error));
}

const std::string* HostOf(const JobState& job, const Communicator& comm, int32_t rank) {
  const Member* member = FindMember(comm, rank);
  const Process* process = member == nullptr ? nullptr : FindProcess(job, member->process);
  return process == nullptr ? nullptr : &process->host;
}

std::string DeadLink(const JobState& job, const Verdict& verdict, const Communicator& comm,
                     const NetworkWalk& walk) {
  const std::string* ends[] = {HostOf(job, comm, walk.culprit), HostOf(job, comm, walk.peer)};
  for (const HostSign& sign : FindHostSigns(job, verdict.since_ns).signs) {
    const bool is_dead = std::find(std::begin(kDeadLinks), std::end(kDeadLinks), sign.fact->kind) !=
                         std::end(kDeadLinks);
    const bool is_an_end = std::any_of(std::begin(ends), std::end(ends), [&](const auto* host) {
      return host != nullptr && *host == *sign.host;
    });
    // A link may have come back since, and the job gone on.
    const bool is_old =
        sign.fact->at_ns != 0 && sign.fact->at_ns < verdict.since_ns - kDiesBeforeWaitNs;
    if (is_dead && is_an_end && !is_old)
      return absl::StrCat(*sign.host, ": ", HostFactInWords(*sign.fact));
  }
  return "";
}

std::string NotStarted(const JobState& job, const Verdict& verdict, const Communicator& comm,
                       int32_t rank) {
  if (!HasNotStarted(comm, rank, verdict.position)) return "";
  return absl::StrCat("rank ", PublicRank(job, FindMember(comm, rank)->process, rank),
                      ": its GPU has not started the call, shown by GPU markers");
}

}  // namespace

bool HasNotStarted(const Communicator& comm, int32_t rank, uint64_t position) {
  const Member* member = FindMember(comm, rank);
  if (member == nullptr || !member->has_markers || member->started > position) return false;
  return std::any_of(comm.members.begin(), comm.members.end(), [&](const auto& other) {
    return other.second.has_markers && other.second.started > position;
  });
}

NetworkWitness SecondWitness(const JobState& job, const Verdict& verdict, const NetworkWalk& walk) {
  const auto found = job.communicators.find(verdict.communicator);
  if (found == job.communicators.end()) return {};
  const Communicator& comm = found->second;
  std::string proof = ErrorOf(job, comm, walk.culprit);
  const bool is_link = walk.fault == NetworkFault::kLink;
  if (proof.empty() && is_link) proof = ErrorOf(job, comm, walk.peer);
  const bool is_gpu = walk.fault == NetworkFault::kOwnGpu || walk.fault == NetworkFault::kPeerGpu;
  if (proof.empty() && is_gpu) proof = NotStarted(job, verdict, comm, walk.culprit);
  if (!proof.empty()) return {std::move(proof), true};
  return {is_link ? DeadLink(job, verdict, comm, walk) : "", false};
}

}  // namespace rollcall
