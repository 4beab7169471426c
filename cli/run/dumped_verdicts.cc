// SPDX-License-Identifier: Apache-2.0
#include "cli/run/dumped_verdicts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/flight_recorder/import.h"
#include "daemon/diagnosis/diagnose.h"

namespace rollcall {
namespace {

// A rank's workers inherit its number, and the rank itself came first.
std::map<int32_t, int32_t> LiveRanks(const JobState& job) {
  std::map<int32_t, int32_t> ranks;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0 || HasEnded(process)) continue;
    const auto [at, is_new] = ranks.emplace(process.global_rank, static_cast<int32_t>(i));
    const Process& known = job.processes[static_cast<size_t>(at->second)];
    if (!is_new && process.start_time < known.start_time) at->second = static_cast<int32_t>(i);
  }
  return ranks;
}

// What the stacks of the job show. Its times count from another moment than those of the dumps.
void Describe(const Process& seen, int64_t now_ns, Process* process) {
  process->host = seen.host;
  process->pid = seen.pid;
  process->stack_words = seen.stack_words;
  process->place = seen.place;
  process->thread_places = seen.thread_places;
  process->motion = seen.motion;
  process->stacks_ns = seen.stacks_ns == 0 ? 0 : now_ns;
}

// The indices of the job's processes instead of those of the dumps, or -1.
class Indices {
 public:
  Indices(const JobState& dumped, std::map<int32_t, int32_t> ranks)
      : dumped_(dumped), ranks_(std::move(ranks)) {}

  int32_t Of(int32_t dumped) const {
    if (dumped < 0) return -1;
    const auto at = ranks_.find(dumped_.processes[static_cast<size_t>(dumped)].global_rank);
    return at == ranks_.end() ? -1 : at->second;
  }

 private:
  const JobState& dumped_;
  const std::map<int32_t, int32_t> ranks_;
};

void UseIndices(const Indices& indices, Verdict* verdict) {
  for (Culprit& culprit : verdict->culprits) culprit.process = indices.Of(culprit.process);
  std::vector<int32_t> waiting;
  for (const int32_t process : verdict->waiting_processes) {
    const int32_t index = indices.Of(process);
    if (index >= 0) waiting.push_back(index);
  }
  verdict->waiting_processes = std::move(waiting);
}

}  // namespace

std::vector<Verdict> JudgeDumps(std::vector<RankedDump> dumps, const JobState& job,
                                int64_t now_ns) {
  const FlightRecorderInput input = ImportDumps(std::move(dumps), {});
  JobState dumped = input.model.state();
  const std::map<int32_t, int32_t> ranks = LiveRanks(job);
  for (Process& process : dumped.processes) {
    const auto at = ranks.find(process.global_rank);
    if (at == ranks.end()) continue;
    Describe(job.processes[static_cast<size_t>(at->second)], now_ns, &process);
  }
  std::vector<Verdict> verdicts = Diagnose(dumped, now_ns, LimitsWithoutPatience());
  if (!verdicts.empty() && IsWarning(verdicts.front().cause)) return {};
  AddDumpEvidence(input, &verdicts);
  const Indices indices(dumped, ranks);
  for (Verdict& verdict : verdicts) {
    UseIndices(indices, &verdict);
    verdict.certainty = std::min(verdict.certainty, Certainty::kLikely);
  }
  return verdicts;
}

}  // namespace rollcall
