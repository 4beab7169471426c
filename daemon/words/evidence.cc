// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/evidence.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

std::string CommunicatorById(const JobState& job, uint64_t id) {
  const auto it = job.communicators.find(id);
  return it == job.communicators.end() ? CommunicatorInWords(id, "")
                                       : CommunicatorInWords(job, it->second);
}

std::string BlockedInWords(const JobState& job, const BlockedCall& blocked, int64_t now_ns) {
  std::string text = absl::StrCat("inside ", OpInWords(blocked.op));
  if (blocked.communicator != 0) {
    absl::StrAppend(&text, " on ", CommunicatorById(job, blocked.communicator));
  }
  return absl::StrCat(text, SinceInWords(blocked.since_ns, now_ns));
}

std::string StateInWords(const Process& process) {
  const std::string stop = StopInWords(process.state, process.wait_channel);
  if (!stop.empty()) return stop;
  switch (process.state) {
    case 'D':
      return absl::StrCat("in uninterruptible sleep (state D)",
                          process.wait_channel.empty() ? "" : " in " + process.wait_channel);
    case 'Z':
      return "a zombie (state Z)";
    default:
      return process.traced ? "traced by a debugger" : "";
  }
}

std::string WaitName(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  if (known != nullptr) {
    for (const BlockedCall& blocked : known->blocked) {
      if (OpKind(blocked.op) == CallKind::kWait) return OpInWords(blocked.op);
    }
  }
  return "a wait for the GPU";
}

std::vector<int32_t> RanksWith(Proof proof, const std::vector<Waiter>& waiters,
                               const std::vector<int32_t>& ranks) {
  std::vector<int32_t> those;
  for (size_t i = 0; i < waiters.size(); ++i) {
    if (waiters[i].wait.proof == proof) those.push_back(ranks[i]);
  }
  return those;
}

bool TestsInLoop(const JobState& job, const Waiter& waiter) {
  const Process* process = FindProcess(job, waiter.process);
  return process != nullptr &&
         std::any_of(process->blocked.begin(), process->blocked.end(),
                     [](const BlockedCall& blocked) { return IsTest(blocked.op); });
}

// What shows inferred waits, a line for each kind.
std::vector<std::string> DescribeInferred(const JobState& job, const std::vector<Waiter>& waiters,
                                          const std::vector<int32_t>& ranks) {
  std::vector<int32_t> loops, others;
  for (size_t i = 0; i < waiters.size(); ++i) {
    if (waiters[i].wait.proof != Proof::kInferred) continue;
    (TestsInLoop(job, waiters[i]) ? loops : others).push_back(ranks[i]);
  }
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<int32_t>& those, const char* text) {
    if (!those.empty()) lines.push_back(absl::StrCat(RanksInWords(those), ": ", text));
  };
  add(loops, "nothing but tests, in a loop, whether the call is done");
  add(others, "the host thread waits, and its last call was on this communicator");
  return lines;
}

// NCCL refused the creation of the communicator, or the rank's newest call on it.
bool WasRefused(const Member& member) {
  if (member.state == MemberState::kFailed) return true;
  return !member.records.empty() && !IsAccepted(*(member.records.end() - 1));
}

}  // namespace

std::string SinceInWords(int64_t since_ns, int64_t now_ns) {
  if (since_ns <= 0 || now_ns < since_ns) return "";
  return absl::StrCat(" for ", DurationInWords(now_ns - since_ns));
}

std::string DescribeActivity(const JobState& job, int32_t process, int64_t now_ns,
                             const Communicator* comm, int32_t rank) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr) return "";
  const bool is_sibling = known->holds_several && comm != nullptr;
  std::vector<std::string> parts;
  const std::string state = StateInWords(*known);
  if (!state.empty()) parts.push_back(state);
  for (const BlockedCall& blocked : known->blocked) {
    const bool is_meant = !is_sibling || (blocked.communicator == comm->id && blocked.rank == rank);
    if (is_meant && parts.size() < 4) parts.push_back(BlockedInWords(job, blocked, now_ns));
  }
  if (parts.empty() && !known->has_segment) parts.push_back("no recorded NCCL call");
  if (!job.offline && known->liveness == Liveness::kAlive && state.empty()) {
    parts.push_back(absl::StrCat(is_sibling ? "its process " : "",
                                 known->cpu_moving ? "uses CPU time" : "uses no CPU time"));
  }
  return absl::StrJoin(parts, "; ");
}

std::string DescribeEnding(const JobState& job, int32_t process, const Member* member) {
  const Process* known = FindProcess(job, process);
  const Gone gone = HowProcessEnded(job, process);
  if (member != nullptr && HasFailed(job, *member)) return known->error;
  if (gone == Gone::kDied) {
    if (known->exit_signal != 0) return absl::StrCat("killed by signal ", known->exit_signal);
    if (known->exit_code > 0) return absl::StrCat("exit code ", known->exit_code);
    return "the process disappeared";
  }
  if (gone == Gone::kEnded && known->pid == 0) return kNoProcess;
  if (gone == Gone::kEnded) return kEndedUnknown;
  if (gone == Gone::kLeft) {
    if (known->exit_code > 0) return absl::StrCat("exited with code ", known->exit_code);
    if (member != nullptr && WasRefused(*member)) return "exited after NCCL refused its call";
    return known->exit_code == 0 ? "exited normally" : kExitedUnknown;
  }
  if (member == nullptr) return "";
  switch (member->state) {
    case MemberState::kFinalizing:
      return kFinalizing;
    case MemberState::kFinalized:
      return "finalized the communicator";
    case MemberState::kDestroyed:
      return "destroyed the communicator";
    case MemberState::kAborted:
      return "aborted the communicator";
    case MemberState::kRevoked:
      return "revoked the communicator";
    default:
      return "";
  }
}

std::vector<std::string> DescribeEvidence(const JobState& job, const std::vector<Waiter>& waiters,
                                          const std::vector<int32_t>& ranks,
                                          const std::string& call) {
  std::vector<std::string> lines;
  const auto add = [&](Proof proof, const std::string& text) {
    const std::vector<int32_t> those = RanksWith(proof, waiters, ranks);
    if (!those.empty()) lines.push_back(absl::StrCat(RanksInWords(those), ": ", text));
  };
  add(Proof::kShown,
      absl::StrCat("waiting in ", call, " or a later call, ", kShownByMarkersOrHost));
  for (std::string& line : DescribeInferred(job, waiters, ranks)) lines.push_back(std::move(line));
  add(Proof::kIndirect, "the host thread waits for the GPU after a call on another communicator");
  return lines;
}

std::vector<std::string> DescribeMissing(const JobState& job, const std::vector<Waiter>& waiters,
                                         const std::vector<int32_t>& ranks) {
  std::map<std::string, std::vector<int32_t>> unsure;  // by the call that the wait is inferred from
  std::vector<int32_t> stale, loops;
  for (size_t i = 0; i < waiters.size(); ++i) {
    const Waiter& w = waiters[i];
    if (!IsFresh(job, w.process)) {
      stale.push_back(ranks[i]);
    } else if (TestsInLoop(job, w)) {
      loops.push_back(ranks[i]);
    } else if (w.wait.proof != Proof::kShown) {
      unsure[WaitName(job, w.process)].push_back(ranks[i]);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, those] : unsure) {
    lines.push_back(absl::StrCat("no GPU markers on ", RanksInWords(those),
                                 ": Rollcall infers the wait from ", name));
  }
  if (!loops.empty()) {
    lines.push_back(absl::StrCat("whether ", RanksInWords(loops),
                                 PluralForm(loops.size(), " needs", " need"),
                                 " the call to go on: a test does not wait"));
  }
  if (!stale.empty()) {
    lines.push_back(absl::StrCat("no recent report on ", RanksInWords(stale), ": ",
                                 PluralForm(stale.size(), "it", "they"),
                                 " waited in the call at the time of the last one"));
  }
  return lines;
}

Culprit MakeCulprit(const JobState& job, int32_t process, int32_t rank, const Member* member) {
  Culprit culprit;
  culprit.process = process;
  culprit.rank = PublicRank(job, process, rank);
  const Process* known = FindProcess(job, process);
  if (known != nullptr) {
    culprit.host = known->host;
    if (known->holds_several && rank >= 0) culprit.process_rank = known->global_rank;
    culprit.pid = known->pid;
    culprit.state = known->state;
    culprit.wait_channel = known->wait_channel;
    culprit.exit_code = known->exit_code;
    culprit.exit_signal = known->exit_signal;
    culprit.inner_pid = known->inner_pid;
    culprit.uid = known->uid;
#define PROCESS_PLACE(name) culprit.name = known->name;
#include "proto/facts.def"
  }
  if (member != nullptr) {
    if (HasFailed(job, *member)) culprit.error = known->error;
    culprit.device = member->device;
    culprit.entered = member->entered;
  } else if (known != nullptr && HasEnded(*known)) {
    culprit.error = known->error;
  }
  culprit.ending = DescribeEnding(job, process, member);
  return culprit;
}

}  // namespace rollcall
