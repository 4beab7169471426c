// SPDX-License-Identifier: Apache-2.0
// A job in which no rank has made an NCCL call, because some ranks wait for others before that: in
// init_process_group(), in a barrier of torch's store. Only stacks show this.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/rules/rules.h"
#include "daemon/model/progress.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

constexpr int32_t kMostUnseen = 64;
constexpr int64_t kLongestPauseNs = 5 * kSecond;  // between two rounds of looks
constexpr int64_t kOnTheWayNs = 3 * kSecond;      // a sample, from being due to being here

bool HasEnded(const JobState& job, int32_t process) {
  return HowProcessEnded(job, process) != Gone::kNo;
}

// Its stacks show threads or calls of NCCL's: "ncclProxyService", "pncclAllReduce".
bool IsInsideNccl(const Process& process) {
  const std::string words = absl::StrCat(" ", process.stack_words);
  return absl::StrContains(words, " nccl") || absl::StrContains(words, " pnccl");
}

// Launchers and data-loader workers inherit a rank; an earlier attempt had the same ones.
bool SpeaksBetter(const JobState& job, int32_t a, int32_t b) {
  const auto key = [&](int32_t process) {
    const Process& known = job.processes[static_cast<size_t>(process)];
    const auto since = static_cast<int64_t>(known.start_time);
    const bool ended = HasEnded(job, process);
    // The first of the live processes, else the last of the ended ones.
    return std::make_tuple(ended, known.waits_outside_since_ns == 0, ended ? -since : since);
  };
  return key(a) < key(b);
}

struct Start {
  std::map<int32_t, int32_t> processes;  // by rank: that which stands for it
  std::vector<int32_t> waiting, absent;  // processes
  int32_t world_size = 0;
  int64_t since_ns = 0;
  int64_t seen_ns = 0;  // the oldest of the samples
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

Start LookAt(const JobState& job, int64_t now_ns) {
  Start start;
  start.seen_ns = now_ns;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0) continue;
    start.world_size = std::max(start.world_size, process.world_size);
    const auto index = static_cast<int32_t>(i);
    const auto [at, is_new] = start.processes.emplace(process.global_rank, index);
    if (!is_new && SpeaksBetter(job, index, at->second)) at->second = index;
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

// A process without two samples or without fresh reports may do something else by now.
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

void AddCulprits(const JobState& job, const Start& start, int64_t now_ns, Verdict* verdict) {
  for (const int32_t process : start.absent) {
    const Process& known = job.processes[process];
    verdict->culprits.push_back(MakeCulprit(job, process, known.global_rank, nullptr));
    absl::StrAppend(&verdict->stack_words, known.stack_words, " ");
    const bool ended = HowProcessEnded(job, process) != Gone::kNo;
    const std::string doing =
        ended ? HowItEnded(job, process, nullptr) : WhatItDoes(job, process, now_ns);
    if (doing.empty()) continue;
    verdict->evidence.push_back(absl::StrCat("rank ", known.global_rank, ": ", doing));
  }
  std::vector<int32_t> unseen;
  for (int32_t rank = 0; rank < start.world_size && rank < kMaxRanks; ++rank) {
    if (start.processes.count(rank) == 0) unseen.push_back(rank);
  }
  if (unseen.empty()) return;
  verdict->missing_evidence.push_back(
      absl::StrCat("no known process of ", RanksInWords(unseen)));
  for (const int32_t rank : unseen) {
    if (verdict->culprits.size() == kMostUnseen) break;
    verdict->culprits.push_back(MakeCulprit(job, -1, rank, nullptr));
  }
}

}  // namespace

bool HasStarted(const JobState& job) {
  if (!job.communicators.empty()) return true;
  return std::any_of(job.processes.begin(), job.processes.end(), [](const Process& process) {
    if (HasEnded(process)) return false;
    // The library may have recorded nothing: the folder has no room.
    return process.has_met || process.has_segment || IsInsideNccl(process);
  });
}

int64_t StartRoundNs(size_t ranks, const Limits& limits) {
  const auto portions = static_cast<int64_t>((ranks + kStartPortion - 1) / kStartPortion);
  return portions * kSecond + std::clamp(limits.suspect_after_ns, kSecond, kLongestPauseNs);
}

std::optional<Verdict> JudgeStart(const JobState& job, int64_t now_ns, const Limits& limits) {
  if (job.offline || HasStarted(job)) return std::nullopt;
  const Start start = LookAt(job, now_ns);
  const int64_t oldest_ns = now_ns - 2 * StartRoundNs(job.processes.size(), limits) - kOnTheWayNs;
  if (start.waiting.empty() || start.seen_ns - start.since_ns < limits.suspect_after_ns ||
      !AllAreKnown(job, start, oldest_ns)) {
    return std::nullopt;
  }
  Verdict verdict;
  verdict.cause = Cause::kInitIncomplete;
  verdict.certainty = Certainty::kLikely;
  verdict.communicator_size = start.world_size;
  verdict.since_ns = start.since_ns;
  verdict.counts_from_ns = start.counts_from_ns;
  // The time for which the stacks show the wait.
  verdict.waited_ns = start.seen_ns - start.since_ns;
  verdict.evidence_age_ns = now_ns - start.seen_ns;
  for (const int32_t process : start.waiting) {
    verdict.waiting_ranks.push_back(job.processes[process].global_rank);
    verdict.waiting_processes.push_back(process);
  }
  verdict.evidence.push_back(
      absl::StrCat(RanksInWords(verdict.waiting_ranks),
                   ": waiting for the others outside NCCL, shown by their stacks"));
  AddCulprits(job, start, now_ns, &verdict);
  if (verdict.culprits.empty()) return std::nullopt;
  verdict.missing_evidence.push_back(
      "no rank has made an NCCL call yet: the verdict rests on samples of the stacks");
  return verdict;
}

}  // namespace rollcall
