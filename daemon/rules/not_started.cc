// SPDX-License-Identifier: Apache-2.0
// JudgeStart(): a job in which no rank has made an NCCL call because some ranks wait for others
// earlier: in init_process_group(), or in a barrier of torch's store. Only stacks show this.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/model/progress.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/rules/rules.h"
#include "daemon/rules/start_fault.h"
#include "daemon/words/evidence.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedNotStarted = 8;
constexpr int64_t kLongestPauseNs = 5 * kSecond;  // between two rounds of samples
constexpr int64_t kOnTheWayNs = 3 * kSecond;      // from the due time of a sample to its arrival

bool HasEnded(const JobState& job, int32_t process) {
  return HowProcessEnded(job, process) != Gone::kNo;
}

// True if the stacks show threads or calls of NCCL: "ncclProxyService", "pncclAllReduce".
bool IsInsideNccl(const Process& process) {
  const std::string& words = process.stack_words;
  return absl::StartsWith(words, "nccl") || absl::StartsWith(words, "pnccl") ||
         absl::StrContains(words, " nccl") || absl::StrContains(words, " pnccl");
}

// True if its stack shows a call of a group that exists. Nothing may have been recorded: a look is
// taken of jobs that run without the library.
bool IsInACollective(const Process& process) {
  if (process.standing == nullptr) return false;
  const StandPlace& place = process.standing->place;
  const bool is_in_library = place.in.kind == StandKind::kTorch ||
                             place.in.kind == StandKind::kTorchOnDevice ||
                             place.in.kind == StandKind::kNccl || place.in.kind == StandKind::kGloo;
  const auto has = [&place](absl::string_view word) {
    return absl::StrContains(place.functions, word);
  };
  return is_in_library && !IsAtAStore(place.functions) && !has("init_process_group") &&
         !has("new_group") && !has("CommInit") && !has("bootstrap");
}

// True if process `a` represents its rank better than `b`. Launchers and data-loader workers
// inherit a rank, and an earlier attempt had the same ranks.
bool IsBetterCandidate(const JobState& job, int32_t a, int32_t b) {
  const auto key = [&](int32_t process) {
    const Process& known = job.processes[static_cast<size_t>(process)];
    const auto since = static_cast<int64_t>(known.start_time);
    const bool ended = HasEnded(job, process);
    // The first of the live processes, else the last of the ended ones.
    return std::make_tuple(ended, known.waits_outside_since_ns == 0, ended ? -since : since);
  };
  return key(a) < key(b);
}

struct Start : StartRanks {
  int64_t since_ns = 0;
  int64_t seen_ns = 0;  // time of the oldest sample
  int64_t counts_from_ns = 0;
};

void AddWaiting(const JobState& job, int32_t index, Start* start) {
  const Process& process = job.processes[static_cast<size_t>(index)];
  start->waiting.push_back(index);
  const int64_t from_ns = CountsFrom(job, index);
  const bool is_first = start->since_ns == 0;
  if (is_first || process.waits_outside_since_ns < start->since_ns) {
    start->since_ns = process.waits_outside_since_ns;
  }
  start->counts_from_ns = is_first ? from_ns : std::min(start->counts_from_ns, from_ns);
}

Start FindStart(const JobState& job, int64_t now_ns) {
  Start start;
  start.seen_ns = now_ns;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0) continue;
    const auto index = static_cast<int32_t>(i);
    const auto [at, is_new] = start.processes.emplace(process.global_rank, index);
    if (!is_new && IsBetterCandidate(job, index, at->second)) at->second = index;
  }
  for (const auto& [rank, index] : start.processes) {
    const Process& process = job.processes[static_cast<size_t>(index)];
    if (process.stacks_ns != 0 && !HasEnded(job, index)) {
      start.seen_ns = std::min(start.seen_ns, process.stacks_ns);
    }
    if (process.waits_outside_since_ns == 0 || HasEnded(job, index)) {
      start.absent.push_back(index);
    } else {
      AddWaiting(job, index, &start);
    }
  }
  return start;
}

// True if every process has ended or has two samples and fresh reports. Any other process may
// do something else by now.
bool AllAreKnown(const JobState& job, const Start& start, int64_t oldest_ns) {
  return std::all_of(start.processes.begin(), start.processes.end(), [&](const auto& entry) {
    const Process& process = job.processes[static_cast<size_t>(entry.second)];
    if (HasEnded(job, entry.second)) return true;
    if (process.waits_outside_since_ns == 0 && process.stack_words.empty()) return false;
    if (process.stacks_ns == 0) return true;
    return process.stacks_ns >= oldest_ns && process.stacks_ns > process.waits_outside_since_ns &&
           IsHeard(job, entry.second);
  });
}

// Whether one of them uses the CPU, or reads or writes: it prepares what the others wait for.
bool AnyWorks(const JobState& job, const StartBlame& blame, int64_t since_ns) {
  return std::any_of(blame.processes.begin(), blame.processes.end(), [&](int32_t index) {
    const Process& process = job.processes[static_cast<size_t>(index)];
    if (HasEnded(job, index)) return false;
    const Standing* standing = process.standing.get();
    const bool moves = standing != nullptr && (standing->newest_ns < since_ns ||
                                               standing->since_ns > since_ns || standing->rests);
    return moves || process.quiet_since_ns > since_ns;
  });
}

// Whether a sample shows of each of them that no byte moves in it. One that saves slowly uses no
// CPU either.
bool AllAreSeenAtRest(const JobState& job, const StartBlame& blame) {
  return std::all_of(blame.processes.begin(), blame.processes.end(), [&](int32_t index) {
    const Process& process = job.processes[static_cast<size_t>(index)];
    return process.standing != nullptr || HasEnded(job, index);
  });
}

Certainty CertaintyOf(const JobState& job, const StartBlame& blame) {
  switch (blame.fault) {
    // All may wait at one point for somebody who is not a rank.
    case StartFault::kAllWait:
      return Certainty::kPossible;
    case StartFault::kNotReached:
      return AllAreSeenAtRest(job, blame) ? Certainty::kLikely : Certainty::kPossible;
    default:
      return Certainty::kLikely;
  }
}

// Why it is not `likely`.
void AddUnsampled(const JobState& job, const StartBlame& blame, const Limits& limits,
                  Verdict* verdict) {
  if (blame.fault != StartFault::kNotReached || AllAreSeenAtRest(job, blame)) return;
  verdict->missing_evidence.push_back(
      limits.watches_calls_only
          ? "--watch=calls takes no samples of what the absent ranks read and write: they may move"
          : "no sample yet of what the absent ranks read and write: they may move");
}

void DescribeBlamed(const JobState& job, int32_t process, int64_t now_ns, Verdict* verdict) {
  const Process& known = job.processes[static_cast<size_t>(process)];
  absl::StrAppend(&verdict->stack_words, known.stack_words, " ");
  const std::string doing = HasEnded(job, process) ? DescribeEnding(job, process, nullptr)
                                                   : DescribeActivity(job, process, now_ns);
  if (doing.empty()) return;
  verdict->evidence.push_back(absl::StrCat("rank ", known.global_rank, ": ", doing));
}

void AddBlamed(const JobState& job, const StartBlame& blame, int64_t now_ns, Verdict* verdict) {
  std::vector<int32_t> rest;
  for (const int32_t process : blame.processes) {
    const Process& known = job.processes[static_cast<size_t>(process)];
    verdict->culprits.push_back(MakeCulprit(job, process, known.global_rank, nullptr));
    if (blame.fault == StartFault::kOtherSize) {
      verdict->culprits.back().call.count = static_cast<uint64_t>(known.world_size);
    }
    if (verdict->culprits.size() > kDescribedNotStarted) {
      rest.push_back(known.global_rank);
      continue;
    }
    DescribeBlamed(job, process, now_ns, verdict);
  }
  if (rest.empty()) return;
  verdict->evidence.push_back(absl::StrCat("and ", rest.size(), " more: ", RanksInWords(rest)));
}

// Where ranks disagree on the size of the world, a rank that does not exist is not a culprit.
void AddUnseen(const JobState& job, const StartBlame& blame, Verdict* verdict) {
  if (blame.unseen.empty()) return;
  verdict->missing_evidence.push_back(
      absl::StrCat("no agent reports a process of ", RankRanges(blame.unseen).InWords()));
  if (blame.fault == StartFault::kOtherSize) return;
  for (const RankRange& ranks : blame.unseen) {
    verdict->culprits.push_back(MakeCulprit(job, -1, ranks.first, nullptr));
    verdict->culprits.back().ranks = ranks.last - ranks.first + 1;
  }
}

// Those that wait for the culprits; all that wait, if all are culprits.
void AddWaiters(const JobState& job, const Start& start, const StartBlame& blame,
                Verdict* verdict) {
  const std::set<int32_t> blamed(blame.processes.begin(), blame.processes.end());
  for (const bool also_blamed : {false, true}) {
    if (!verdict->waiting_processes.empty()) break;
    for (const int32_t process : start.waiting) {
      if (!also_blamed && blamed.count(process) != 0) continue;
      verdict->waiting_ranks.push_back(job.processes[static_cast<size_t>(process)].global_rank);
      verdict->waiting_processes.push_back(process);
    }
  }
  verdict->evidence.push_back(
      absl::StrCat(RanksInWords(verdict->waiting_ranks),
                   ": waiting for the others outside NCCL, shown by their stacks"));
}

// Empty if they wait for several, or unknown.
std::string KeyOf(const JobState& job, const std::vector<int32_t>& processes) {
  std::string key;
  for (const int32_t process : processes) {
    const std::string& own = job.processes[static_cast<size_t>(process)].place.key;
    if (own.empty() || (!key.empty() && own != key)) return "";
    key = own;
  }
  return key;
}

}  // namespace

bool HasStarted(const JobState& job) {
  if (!job.communicators.empty()) return true;
  return std::any_of(job.processes.begin(), job.processes.end(), [](const Process& process) {
    if (HasEnded(process)) return false;
    // Without room in the folder of the segments the library records nothing.
    return process.has_met || process.has_segment || IsInsideNccl(process) ||
           IsInACollective(process);
  });
}

int64_t StartRoundNs(size_t ranks, const Limits& limits) {
  const auto portions = static_cast<int64_t>((ranks + kStartPortion - 1) / kStartPortion);
  return portions * kSecond + std::clamp(limits.suspect_after_ns, kSecond, kLongestPauseNs);
}

std::optional<Verdict> JudgeStart(const JobState& job, int64_t now_ns, const Limits& limits) {
  if (job.offline || HasStarted(job)) return std::nullopt;
  const Start start = FindStart(job, now_ns);
  const int64_t oldest_ns = now_ns - 2 * StartRoundNs(job.processes.size(), limits) - kOnTheWayNs;
  if (start.waiting.empty() || start.seen_ns - start.since_ns < limits.suspect_after_ns ||
      !AllAreKnown(job, start, oldest_ns)) {
    return std::nullopt;
  }
  const StartBlame blame = FindStartBlame(job, start);
  const int64_t lately_ns = start.seen_ns - limits.suspect_after_ns;
  if (blame.fault == StartFault::kNotReached && AnyWorks(job, blame, lately_ns)) {
    return std::nullopt;
  }
  Verdict verdict;
  verdict.cause = Cause::kInitIncomplete;
  verdict.start_fault = blame.fault;
  verdict.is_idle = blame.may_idle;
  verdict.certainty = CertaintyOf(job, blame);
  verdict.communicator_size = blame.world_size;
  verdict.since_ns = start.since_ns;
  verdict.counts_from_ns = start.counts_from_ns;
  // The length of the wait that the stacks show.
  verdict.waited_ns = start.seen_ns - start.since_ns;
  verdict.evidence_age_ns = now_ns - start.seen_ns;
  AddWaiters(job, start, blame, &verdict);
  AddBlamed(job, blame, now_ns, &verdict);
  AddUnseen(job, blame, &verdict);
  AddUnsampled(job, blame, limits, &verdict);
  verdict.awaited_key = KeyOf(
      job, blame.fault == StartFault::kOtherSize ? blame.processes : verdict.waiting_processes);
  if (blame.fault == StartFault::kOtherSize) verdict.mismatched_fields = {"size"};
  verdict.missing_evidence.push_back(
      "no rank has made an NCCL call yet: the verdict rests on samples of the stacks");
  return verdict;
}

}  // namespace rollcall
