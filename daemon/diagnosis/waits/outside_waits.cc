// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/outside_waits.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/durations.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/progress.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/words/outside_words.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedRanks = 8;

// A thread that prepares batches ends some steps before the main thread finds its queue empty. One
// that ended long before is not a reason.
constexpr int64_t kFailedLately = 600 * kSecond;

// Programs raise these for their flow of control, and wait in their handlers as a matter of course.
constexpr absl::string_view kUsualExceptions[] = {
    "StopIteration", "StopAsyncIteration", "GeneratorExit", "Empty", "Full", "BlockingIOError"};

bool IsWaitForAbsent(const Verdict& v) {
  return v.cause == Cause::kMissingRank || v.cause == Cause::kInitIncomplete ||
         v.cause == Cause::kUnmatchedP2p || v.cause == Cause::kTeardownHang ||
         v.cause == Cause::kStandstill;
}

// Of so many culprits an incident takes the stacks of a sample (incident_life.cc).
constexpr size_t kAllAreSampled = 256;

bool IsOutsideTheSample(const JobState& job, const Culprit& culprit, const Verdict& verdict) {
  const Process* process = FindProcess(job, culprit.process);
  return verdict.culprits.size() > kAllAreSampled && process != nullptr &&
         process->stacks_ns < verdict.since_ns && culprit.ending.empty();
}

// nullptr if nothing that it waits for outside is known to have moved during the wait.
const Process* FindMoved(const JobState& job, const Culprit& culprit, const Verdict& verdict) {
  const Process* process = FindProcess(job, culprit.process);
  const bool is_known = process != nullptr && !process->holds_several && culprit.ending.empty() &&
                        !HasEnded(*process) && IsHeard(job, culprit.process);
  if (!is_known || process->outside_moved_ns == 0) return nullptr;
  return process->outside_moved_ns >= verdict.since_ns ? process : nullptr;
}

// A stack that ends in the end of the interpreter: hooks of atexit run there.
bool IsAtExit(const std::string& functions) {
  return absl::StrContains(functions, " Py_Finalize") ||
         absl::StrContains(functions, " threading._shutdown ");
}

bool TellsNothing(const PlaceException& exception, const PlaceException& of_waiter) {
  if (exception.type.empty() || exception.at.empty()) return true;
  if (exception.type == of_waiter.type && exception.at == of_waiter.at) return true;
  return std::find(std::begin(kUsualExceptions), std::end(kUsualExceptions), exception.type) !=
         std::end(kUsualExceptions);
}

// Other ranks, once each, as people number them.
std::vector<int32_t> RanksAt(const JobState& job, const Process& process,
                             const std::vector<int32_t>& pids) {
  std::vector<int32_t> ranks;
  if (pids.empty()) return ranks;
  for (const Process& other : job.processes) {
    if (other.host != process.host || other.pid == process.pid || other.global_rank < 0) continue;
    if (HasEnded(other) || !other.has_met) continue;
    if (std::find(pids.begin(), pids.end(), other.pid) == pids.end()) continue;
    if (other.global_rank != process.global_rank) ranks.push_back(other.global_rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// A rank may hold the store, and is then at the other end of every wait for a key.
bool AsksTheStore(const StackPlace& place) {
  return HasWait(place.functions, waits::kStore) || HasWait(place.functions, waits::kStoreId);
}

bool AllWait(const std::vector<int32_t>& ranks, const Verdict& verdict) {
  const std::set<int32_t> waiting(verdict.waiting_ranks.begin(), verdict.waiting_ranks.end());
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int32_t rank) { return waiting.count(rank) != 0; });
}

}  // namespace

void WeighOutsideWork(const JobState& job, Verdict* verdict) {
  if (!IsWaitForAbsent(*verdict) || verdict->culprits.empty()) return;
  int64_t moved_ns = INT64_MAX;
  bool moves_now = true;
  for (const Culprit& culprit : verdict->culprits) {
    if (IsOutsideTheSample(job, culprit, *verdict)) continue;
    const Process* process = FindMoved(job, culprit, *verdict);
    if (process == nullptr) return;
    moved_ns = std::min(moved_ns, process->outside_moved_ns);
    moves_now = moves_now && (!process->children_at_work.empty() || process->receives > 0);
  }
  if (moved_ns == INT64_MAX) return;  // no stacks are known
  verdict->outside_moved = true;
  verdict->counts_from_ns = std::max(verdict->counts_from_ns, moved_ns);
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  if (!moves_now) return;
  verdict->late = true;
  for (size_t i = 0; i < std::min(kDescribedRanks, verdict->culprits.size()); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    const Process& process = job.processes[static_cast<size_t>(culprit.process)];
    if (process.children_at_work.empty() && process.receives <= 0) continue;
    const RankOutside outside = {culprit.rank, process.children_at_work, process.receives};
    if (verdict->outside.rank < 0) verdict->outside = outside;
    verdict->evidence.push_back(absl::StrCat("rank ", culprit.rank, ": ", WorkInWords(outside)));
  }
}

void AddHandledException(Verdict* verdict) {
  const PlaceException& of_waiter = verdict->waiting_place.handles;
  for (size_t i = 0; i < std::min(kDescribedRanks, verdict->places.size()); ++i) {
    const PlaceException& exception = verdict->places[i].handles;
    if (i >= verdict->culprits.size() || TellsNothing(exception, of_waiter)) continue;
    const int32_t rank = verdict->culprits[i].rank;
    if (verdict->handled.exception.type.empty()) verdict->handled = {rank, exception};
    verdict->evidence.push_back(ExceptionInWords({rank, exception}));
  }
}

void AddLastException(const JobState& job, Verdict* verdict) {
  for (size_t i = 0; i < verdict->culprits.size(); ++i) {
    Culprit* culprit = &verdict->culprits[i];
    const Process* process = FindProcess(job, culprit->process);
    if (process == nullptr || process->error.empty() || HasEnded(*process)) continue;
    // An interactive program prints an exception and goes on.
    const bool is_at_exit = i < verdict->places.size() && IsAtExit(verdict->places[i].functions);
    const bool is_kept = !process->keepers.empty() && process->stacks_ns >= verdict->since_ns;
    if (!is_at_exit && !is_kept) continue;
    culprit->error = process->error;
    culprit->exits = true;
  }
}

// A thread of a process with several ranks explains the absence of the one whose own thread is
// gone.
static bool MayBeOfRank(const JobState& job, const Process& process, const Culprit& culprit,
                        const Verdict& verdict) {
  if (!process.holds_several) return true;
  const auto comm = job.communicators.find(verdict.communicator);
  const std::vector<ThreadPlace>& threads = process.thread_places;
  const bool are_all_known = !threads.empty() && threads.size() < limits::kThreadPlaces &&
                             process.stacks_ns >= verdict.since_ns;
  if (comm == job.communicators.end() || !are_all_known) return false;
  const std::vector<uint32_t> own = CallingTids(process, comm->second, culprit.rank);
  const auto is_own = [&](const ThreadPlace& thread) {
    return std::find(own.begin(), own.end(), thread.tid) != own.end();
  };
  return !own.empty() && std::none_of(threads.begin(), threads.end(), is_own);
}

void AddThreadFailures(const JobState& job, Verdict* verdict) {
  if (!IsWaitForAbsent(*verdict)) return;
  for (size_t i = 0; i < std::min(kDescribedRanks, verdict->culprits.size()); ++i) {
    Culprit* culprit = &verdict->culprits[i];
    const Process* process = FindProcess(job, culprit->process);
    if (process == nullptr || HasEnded(*process)) continue;
    const ThreadFailure& failure = process->thread_failure;
    if (failure.error.empty() || failure.failed_ns < verdict->since_ns - kFailedLately) continue;
    if (!MayBeOfRank(job, *process, *culprit, *verdict)) continue;
    culprit->thread_error = failure.error;
    culprit->failed_thread = failure.thread;
    verdict->evidence.push_back(ThreadFailureInWords(*culprit));
  }
}

void AddSocketWait(const JobState& job, Verdict* verdict) {
  const bool is_key = verdict->communicator_kind == CommKind::kStore;
  if (is_key || !IsWaitForAbsent(*verdict) || verdict->cause == Cause::kStandstill) return;
  for (size_t i = 0; i < std::min(kDescribedRanks, verdict->places.size()); ++i) {
    const Process* process = FindProcess(job, verdict->culprits[i].process);
    if (process == nullptr || process->holds_several) continue;
    if (AsksTheStore(verdict->places[i])) continue;
    const std::vector<int32_t> ranks = RanksAt(job, *process, verdict->places[i].other_end);
    if (ranks.empty()) continue;
    const RankSocket socket = {verdict->culprits[i].rank, ranks, AllWait(ranks, *verdict)};
    if (verdict->socket.others.empty()) verdict->socket = socket;
    verdict->evidence.push_back(SocketInWords(socket));
  }
}

void AddKeeper(const JobState& job, Verdict* verdict) {
  for (size_t i = 0; i < std::min(kDescribedRanks, verdict->culprits.size()); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    const Process* process = FindProcess(job, culprit.process);
    if (process == nullptr || HasEnded(*process) || process->keepers.empty()) continue;
    if (process->stacks_ns < verdict->since_ns) continue;
    for (const ThreadPlace& thread : process->keepers) {
      const RankKeeper keeper = {culprit.rank, thread};
      if (verdict->keeper.rank < 0) verdict->keeper = keeper;
      verdict->evidence.push_back(KeeperInWords(keeper));
    }
  }
}

}  // namespace rollcall
