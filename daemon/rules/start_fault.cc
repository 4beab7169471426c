// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/start_fault.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <unordered_set>

#include "absl/strings/match.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

const Process& At(const JobState& job, int32_t process) {
  return job.processes[static_cast<size_t>(process)];
}

// The size of the world; 0 if unknown. `votes`: the number of ranks that got each WORLD_SIZE.
int32_t RightSize(const std::map<int32_t, size_t>& votes, size_t started) {
  size_t all = 0;
  for (const auto& [size, ranks] : votes) all += ranks;
  for (const auto& [size, ranks] : votes) {
    if (2 * ranks > all) return size;
  }
  const auto as_started = static_cast<int32_t>(started);
  return votes.count(as_started) != 0 ? as_started : 0;
}

// Sets the size of the world. Returns the ranks that got another one.
std::vector<int32_t> FindToldOtherSize(const JobState& job, const StartRanks& ranks,
                                       int32_t* world_size) {
  std::map<int32_t, size_t> votes;
  for (const auto& [rank, process] : ranks.processes) {
    if (At(job, process).world_size > 0) ++votes[At(job, process).world_size];
  }
  if (votes.empty()) return {};
  const int32_t right = RightSize(votes, ranks.processes.size());
  *world_size = right != 0 ? right : votes.rbegin()->first;
  std::vector<int32_t> wrong;
  for (const auto& [rank, process] : ranks.processes) {
    const int32_t told = At(job, process).world_size;
    if (votes.size() > 1 && told > 0 && told != right) wrong.push_back(process);
  }
  return wrong;
}

std::vector<RankRange> FindUnseen(const StartRanks& ranks, int32_t world_size) {
  const int32_t end = std::min(world_size, kMaxRanks);
  std::vector<RankRange> unseen;
  int32_t next = 0;
  for (auto at = ranks.processes.begin(); at != ranks.processes.end() && at->first < end; ++at) {
    if (at->first > next) unseen.push_back({next, at->first - 1});
    next = at->first + 1;
  }
  if (next < end) unseen.push_back({next, end - 1});
  return unseen;
}

// Those that wait at another point than most; all, if no point has the majority; no rank, if all
// are at one, or if the line of some is not known: libraries' functions differ by chance.
std::vector<int32_t> FindElsewhere(const JobState& job, const std::vector<int32_t>& waiting) {
  std::map<std::string, size_t> points;
  for (const int32_t process : waiting) ++points[At(job, process).place.at];
  if (points.size() < 2 || points.count("") != 0) return {};
  std::vector<int32_t> elsewhere;
  std::copy_if(waiting.begin(), waiting.end(), std::back_inserter(elsewhere), [&](int32_t process) {
    return 2 * points[At(job, process).place.at] <= waiting.size();
  });
  return elsewhere;
}

bool ContainsAny(const std::string& functions, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&functions](const char* word) { return absl::StrContains(functions, word); });
}

// In a store of PyTorch, and in nothing for which all ranks meet: somebody who is not a rank may be
// to set the key.
bool WaitsForAKey(const Process& process) {
  const std::string& functions = process.place.functions;
  return ContainsAny(functions, {"Store::", "Store."}) &&
         !ContainsAny(functions, {"init_process_group", "ProcessGroup", "barrier", "Barrier",
                                  "rendezvous", "waitForWorkers", "TCPStore::TCPStore"});
}

bool AreAllIn(const std::vector<int32_t>& some, const std::vector<int32_t>& all) {
  const std::unordered_set<int32_t> known(all.begin(), all.end());
  return std::all_of(some.begin(), some.end(),
                     [&known](int32_t process) { return known.count(process) != 0; });
}

}  // namespace

StartBlame FindStartBlame(const JobState& job, const StartRanks& ranks) {
  StartBlame blame;
  const std::vector<int32_t> wrong = FindToldOtherSize(job, ranks, &blame.world_size);
  blame.unseen = FindUnseen(ranks, blame.world_size);
  if (!wrong.empty() && AreAllIn(ranks.absent, wrong)) {
    blame.fault = StartFault::kOtherSize;
    blame.processes = wrong;
  } else if (!ranks.absent.empty()) {
    blame.fault = StartFault::kNotReached;
    blame.processes = ranks.absent;
  } else if (!blame.unseen.empty()) {
    blame.fault = StartFault::kNotStarted;
  } else if (std::all_of(ranks.waiting.begin(), ranks.waiting.end(),
                         [&job](int32_t process) { return WaitsForAKey(At(job, process)); })) {
    blame.fault = StartFault::kAllWait;
    blame.may_idle = true;
  } else {
    blame.processes = FindElsewhere(job, ranks.waiting);
    blame.fault = blame.processes.empty() ? StartFault::kAllWait : StartFault::kWaitsElsewhere;
  }
  return blame;
}

}  // namespace rollcall
