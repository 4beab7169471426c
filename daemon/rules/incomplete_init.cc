// FindIncompleteInits(): communicators whose creation waits for ranks.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/absence.h"
#include "daemon/rules/rank_map.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

// The creating call that a waiting rank is in.
Op CreatingCall(const JobState& job, const Communicator& comm) {
  for (const auto& [rank, member] : comm.members) {
    const Process* process = ProcessOf(job, member.process);
    if (process == nullptr || member.state != MemberState::kInitializing) continue;
    for (const BlockedCall& blocked : process->blocked) {
      const bool ours = blocked.communicator == comm.id || blocked.communicator == 0;
      if (ours && KindOf(blocked.op) == CallKind::kCreate) return blocked.op;
    }
  }
  return comm.parent == 0 ? Op::kCommInitRank : Op::kCommSplit;
}

// Ranks that came, but cannot take part any more.
void AddLost(const JobState& job, int32_t rank, const Member& member, Absence* absence) {
  const Gone gone = HowProcessEnded(job, member.process);
  const bool failed = member.state == MemberState::kFailed;
  if (!failed && gone == Gone::kNo) return;
  Absent absent;
  absent.rank = rank;
  absent.process = member.process;
  absent.gone = gone;
  absent.gone_since_ns = GoneSince(job, member);
  absent.came = true;
  absence->absents.push_back(absent);
  if (failed) {
    absence->evidence.push_back(
        absl::StrCat(RanksInWords({PublicRank(job, member.process, rank)}), ": its call failed"));
  }
}

void AddMembers(const JobState& job, const Communicator& comm, Absence* absence) {
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank)) continue;
    const size_t lost = absence->absents.size();
    AddLost(job, rank, member, absence);
    const bool waits = member.state == MemberState::kInitializing && member.init_entered_ns > 0;
    if (absence->absents.size() != lost || !waits) continue;
    const Evidence evidence = IsFresh(job, member.process) ? Evidence::kShown : Evidence::kInferred;
    absence->waiters.push_back({rank, member.process, {0, member.init_entered_ns, evidence}});
  }
}

void AddNeverCame(const JobState& job, const Communicator& comm, Absence* absence) {
  const std::vector<int32_t> unknown = UnknownRanks(comm);
  const auto processes = ProcessesOfRanks(job, comm, unknown);
  std::vector<int32_t> nameless;
  for (const int32_t rank : unknown) {
    Absent absent;
    absent.rank = rank;
    const auto it = processes.find(rank);
    if (it == processes.end()) {
      nameless.push_back(rank);
      absent.at_most = Certainty::kLikely;
    } else {
      absent.process = it->second;
      absent.gone = HowProcessEnded(job, it->second);
      absent.gone_since_ns = ProcessOf(job, it->second)->ended_ns;
      if (absent.gone == Gone::kNo && !IsFresh(job, it->second)) {
        absent.at_most = Certainty::kPossible;
      }
    }
    absence->absents.push_back(absent);
  }
  if (nameless.empty()) return;
  absence->missing_evidence.push_back(
      absl::StrCat("no process is known that could be ", RanksInWords(nameless),
                   " of the communicator: not started, without the library, or on a host ",
                   job.offline ? "whose segments are not here" : "without an agent"));
}

}  // namespace

std::vector<Absence> FindIncompleteInits(const JobState& job) {
  std::vector<Absence> result;
  for (const auto& [id, comm] : job.communicators) {
    if (comm.size <= 1 || comm.size > kMaxRanks || HasFormed(comm)) continue;
    Absence absence;
    absence.communicator = &comm;
    AddMembers(job, comm, &absence);
    if (absence.waiters.empty()) continue;
    AddNeverCame(job, comm, &absence);
    absence.call.op = CreatingCall(job, comm);
    if (!absence.absents.empty()) result.push_back(std::move(absence));
  }
  return result;
}

}  // namespace rollcall
