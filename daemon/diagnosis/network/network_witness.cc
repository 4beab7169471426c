// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/network/network_witness.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/hosts/host_signs.h"
#include "daemon/model/progress.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/host_fact_words.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// What no busy network causes, and no program.
// A message of a dead link comes this long before the wait at most.
constexpr int64_t kDiesBeforeWaitNs = 10 * kSecond;

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

}  // namespace

bool HasNotStarted(const Communicator& comm, int32_t rank, uint64_t position) {
  const Member* member = FindMember(comm, rank);
  if (member == nullptr || !member->has_markers || member->started > position) return false;
  return std::any_of(comm.members.begin(), comm.members.end(), [&](const auto& other) {
    return other.second.has_markers && other.second.started > position;
  });
}

std::string SecondWitness(const JobState& job, const Verdict& verdict, const NetworkWalk& walk) {
  const auto comm = job.communicators.find(verdict.communicator);
  if (comm == job.communicators.end()) return "";
  const std::string error = ErrorOf(job, comm->second, walk.culprit);
  if (!error.empty()) return error;
  switch (walk.fault) {
    case NetworkFault::kOwnGpu:
    case NetworkFault::kPeerGpu:
      return HasNotStarted(comm->second, walk.culprit, verdict.position)
                 ? absl::StrCat("rank ",
                                PublicRank(job, FindMember(comm->second, walk.culprit)->process,
                                           walk.culprit),
                                ": its GPU has not started the call, shown by GPU markers")
                 : "";
    case NetworkFault::kLink: {
      const std::string peers = ErrorOf(job, comm->second, walk.peer);
      return peers.empty() ? DeadLink(job, verdict, comm->second, walk) : peers;
    }
    default:
      return "";
  }
}

}  // namespace rollcall
