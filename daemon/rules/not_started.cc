// A job of which no rank has come to NCCL, because some wait for others before it: in
// init_process_group(), in a barrier of torch's store. Seen by stacks only.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/rules/describe.h"
#include "daemon/rules/progress.h"
#include "daemon/rules/rules.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

constexpr int32_t kMostUnseen = 64;

struct Start {
  std::vector<int32_t> waiting, absent;  // processes
  std::set<int32_t> ranks;
  int32_t world_size = 0;
  int64_t since_ns = 0;
};

Start LookAt(const JobState& job) {
  Start start;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0) continue;
    start.ranks.insert(process.global_rank);
    start.world_size = std::max(start.world_size, process.world_size);
    const auto index = static_cast<int32_t>(i);
    if (process.waits_outside_since_ns == 0) {
      start.absent.push_back(index);
      continue;
    }
    start.waiting.push_back(index);
    if (start.since_ns == 0 || process.waits_outside_since_ns < start.since_ns) {
      start.since_ns = process.waits_outside_since_ns;
    }
  }
  return start;
}

// Who was not asked yet may wait as well.
bool AllAreKnown(const JobState& job, const Start& start) {
  return std::all_of(start.absent.begin(), start.absent.end(), [&](int32_t process) {
    return HowProcessEnded(job, process) != Gone::kNo ||
           !job.processes[process].stack_words.empty();
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
    if (start.ranks.count(rank) == 0) unseen.push_back(rank);
  }
  if (unseen.empty()) return;
  verdict->missing_evidence.push_back(
      absl::StrCat("no process of ", RanksInWords(unseen), " is known"));
  for (const int32_t rank : unseen) {
    if (verdict->culprits.size() == kMostUnseen) break;
    verdict->culprits.push_back(MakeCulprit(job, -1, rank, nullptr));
  }
}

}  // namespace

std::optional<Verdict> JudgeStart(const JobState& job, int64_t now_ns, const Limits& limits) {
  if (!job.communicators.empty() || job.offline) return std::nullopt;
  const Start start = LookAt(job);
  if (start.waiting.empty() || now_ns - start.since_ns < limits.suspect_after_ns ||
      !AllAreKnown(job, start)) {
    return std::nullopt;
  }
  Verdict verdict;
  verdict.cause = Cause::kInitIncomplete;
  verdict.certainty = Certainty::kLikely;
  verdict.communicator_size = start.world_size;
  verdict.since_ns = start.since_ns;
  verdict.waited_ns = now_ns - start.since_ns;
  for (const int32_t process : start.waiting) {
    verdict.waiting_ranks.push_back(job.processes[process].global_rank);
    verdict.waiting_processes.push_back(process);
  }
  verdict.evidence.push_back(
      absl::StrCat(RanksInWords(verdict.waiting_ranks),
                   ": waiting for the others outside NCCL, as the stacks show"));
  AddCulprits(job, start, now_ns, &verdict);
  if (verdict.culprits.empty()) return std::nullopt;
  verdict.missing_evidence.push_back(
      "no NCCL call was made yet: where the ranks stand is known from samples of their stacks");
  return verdict;
}

}  // namespace rollcall
