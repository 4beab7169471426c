// SPDX-License-Identifier: Apache-2.0
// FindStuckTeardown(): ranks that wait inside CommFinalize, CommDestroy or CommAbort and
// have no open call on the communicator.
#include <algorithm>
#include <set>

#include "daemon/rules/stuck_call.h"

namespace rollcall {
namespace {

// The teardown call on `comm` that the process is inside, or nullptr.
const BlockedCall* TearingDown(const JobState& job, const Communicator& comm,
                               const Member& member) {
  if (member.state == MemberState::kReady || member.state == MemberState::kInitializing) {
    return nullptr;
  }
  const Process* process = FindProcess(job, member.process);
  if (process == nullptr || HowProcessEnded(job, member.process) != Gone::kNo) return nullptr;
  for (const BlockedCall& blocked : process->blocked) {
    if (blocked.communicator == comm.id && OpKind(blocked.op) == CallKind::kTeardown) {
      return &blocked;
    }
  }
  return nullptr;
}

// Open collectives or sends on the GPU delay the teardown.
bool HasOpenCalls(const JobState& job, const Communicator& comm, const Member& member) {
  return FindWait(job, comm, member).has_value() ||
         (member.has_markers && member.p2p_started > member.p2p_finished);
}

bool HasTornDown(const Member& member) {
  return member.state == MemberState::kFinalized || member.state == MemberState::kDestroyed ||
         member.state == MemberState::kAborted;
}

std::string HostName(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known == nullptr ? "" : known->host;
}

// CommDestroy and CommAbort synchronize the ranks of one host, CommFinalize all ranks.
void AddTeardownAbsents(const JobState& job, const Communicator& comm,
                        const std::set<std::string>& hosts, StuckCall* call) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || HasTornDown(member)) continue;
    if (TearingDown(job, comm, member) != nullptr) continue;
    if (call->call.op != Op::kCommFinalize && hosts.count(HostName(job, member.process)) == 0) {
      continue;
    }
    Absent absent = MakeAbsent(job, rank, member, Lack::kNotEntered);
    absent.gone = HowProcessEnded(job, member.process);
    call->absents.push_back(absent);
  }
}

}  // namespace

void FindStuckTeardown(const JobState& job, const Communicator& comm,
                       std::vector<StuckCall>* calls) {
  StuckCall call;
  call.kind = StuckCall::Kind::kTeardown;
  call.communicator = &comm;
  std::set<std::string> hosts;
  for (const auto& [rank, member] : comm.members) {
    const BlockedCall* inside = InRange(comm, rank) ? TearingDown(job, comm, member) : nullptr;
    if (inside == nullptr || HasOpenCalls(job, comm, member)) continue;
    const Proof proof = IsFresh(job, member.process) ? Proof::kShown : Proof::kInferred;
    call.waiters.push_back({rank, member.process, {member.entered, inside->since_ns, proof}});
    call.call.op = inside->op;
    call.position = std::max(call.position, member.entered);
    call.since_ns =
        call.since_ns == 0 ? inside->since_ns : std::min(call.since_ns, inside->since_ns);
    hosts.insert(HostName(job, member.process));
  }
  if (call.waiters.empty()) return;
  AddTeardownAbsents(job, comm, hosts, &call);
  calls->push_back(std::move(call));
}

}  // namespace rollcall
