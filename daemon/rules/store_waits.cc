// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/store_waits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/model/progress.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/rules/members/pair_names.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/places.h"

namespace rollcall {
namespace {

constexpr size_t kMostStoreCalls = 16;
constexpr size_t kMostLines = 64;  // of the program at which ranks wait
// With more ranks that may owe the id, nothing shows who owes it.
constexpr size_t kMostMakers = 8;

bool ContainsOne(const std::string& functions, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&functions](const char* word) { return absl::StrContains(functions, word); });
}

// By its last sample, inside a call of torch.distributed that gets an id from the store.
bool WaitedForId(const Process& process) {
  if (process.global_rank < 0 || HasEnded(process)) return false;
  const std::string& functions = process.place.functions;
  return HasWait(functions, waits::kStoreId) &&
         ContainsOne(functions, {" distributed_c10d.", "ProcessGroupNCCL::", "NCCLUniqueID"});
}

// Two ranks that exchange a message for the first time have a communicator of their own. kNone: the
// wait is in another call.
Op MessageOf(const Process& process) {
  const std::string& functions = process.place.functions;
  if (ContainsOne(functions, {" distributed_c10d.batch_isend_irecv "})) return Op::kNone;
  if (ContainsOne(functions, {" distributed_c10d.send ", " distributed_c10d.isend ",
                              "ProcessGroupNCCL::send "})) {
    return Op::kSend;
  }
  const bool receives = ContainsOne(
      functions,
      {" distributed_c10d.recv ", " distributed_c10d.irecv ", "ProcessGroupNCCL::recv "});
  return receives ? Op::kRecv : Op::kNone;
}

// The stuck calls of the job, by process. A job may have 100,000 ranks that wait and that are
// absent, so no query may search the calls.
class OpenCalls {
 public:
  OpenCalls(const JobState& job, const StuckCalls& calls)
      : calls_(calls), waits_(job.processes.size()) {
    for (const StuckCall* call : calls) since_ns_ = std::min(since_ns_, call->since_ns);
  }

  // Since when a rank of the job waits in a call. What a process did before shows nothing.
  int64_t since_ns() const { return since_ns_; }

  // Builds the index for the functions below. Most jobs have no rank in the store, and need none.
  void Index() {
    for (const StuckCall* call : calls_) {
      looked_at += call->waiters.size() + call->absents.size();
      Mark(*call, &waits_);
      for (const Absent& absent : call->absents) {
        if (absent.process >= 0) lacking_[absent.process].push_back(call);
      }
    }
  }

  bool Waits(int32_t process) const { return waits_[static_cast<size_t>(process)]; }

  const std::vector<const StuckCall*>& Lacking(int32_t process) const {
    static const auto* none = new std::vector<const StuckCall*>;
    const auto at = lacking_.find(process);
    return at == lacking_.end() ? *none : at->second;
  }

  // By process: whether it waits in a call that lacks one of these.
  std::vector<bool> WaitFor(const std::vector<int32_t>& processes) {
    std::unordered_set<const StuckCall*> found;
    for (const int32_t process : processes) {
      looked_at += Lacking(process).size();
      found.insert(Lacking(process).begin(), Lacking(process).end());
    }
    std::vector<bool> waiting(waits_.size());
    for (const StuckCall* call : found) {
      looked_at += call->waiters.size();
      Mark(*call, &waiting);
    }
    return waiting;
  }

  size_t looked_at = 0;

 private:
  static void Mark(const StuckCall& call, std::vector<bool>* waiting) {
    for (const Waiter& waiter : call.waiters) {
      if (waiter.process >= 0) (*waiting)[static_cast<size_t>(waiter.process)] = true;
    }
  }

  const StuckCalls& calls_;
  int64_t since_ns_ = INT64_MAX;
  std::vector<bool> waits_;
  std::unordered_map<int32_t, std::vector<const StuckCall*>> lacking_;
};

class Search {
 public:
  Search(const JobState& job, const StuckCalls& calls, int64_t now_ns, const Limits& limits)
      : job_(job), now_ns_(now_ns), limits_(limits), open_(job, calls) {
    for (size_t i = 0; i < job.processes.size(); ++i) {
      const auto index = static_cast<int32_t>(i);
      if (!WaitsForId(index) || !IsHeard(job, index)) continue;
      const Op op = MessageOf(At(index));
      // A message has two ends, so each rank that waits to exchange one has its own call.
      in_store_[{At(index).place.at, op, op == Op::kNone ? -1 : index}].push_back(index);
    }
  }

  StoreWaits Run() {
    StoreWaits waits;
    if (in_store_.empty()) return waits;
    open_.Index();
    newest_calls_ = NewestCallTimes(job_);
    FindBest();
    size_t lines = 0;
    for (const auto& [key, inside] : in_store_) {
      if (waits.calls.size() == kMostStoreCalls) break;
      const Op op = std::get<Op>(key);
      if (op == Op::kNone && ++lines > kMostLines) continue;
      const std::vector<int32_t> makers =
          op == Op::kNone ? MakersOfAll(inside) : MakersOfPair(inside.front());
      if (makers.empty() || makers.size() > kMostMakers || WorkOn(makers, inside)) continue;
      Add(inside, makers, op, &waits);
    }
    waits.looked_at = open_.looked_at;
    return waits;
  }

 private:
  using Key = std::tuple<std::string, Op, int32_t>;  // line, Send or Recv, process
  using RankedProcess = std::pair<int32_t, int32_t>;

  const Process& At(int32_t process) const { return job_.processes[static_cast<size_t>(process)]; }

  // A sample from before anybody waited shows where the process was, perhaps hours ago.
  bool IsCurrent(int32_t process) const { return At(process).stacks_ns >= open_.since_ns(); }

  // In most jobs no rank waits outside: then this reads of each process only what all rules read.
  bool WaitsForId(int32_t process) const {
    return At(process).waits_outside_since_ns != 0 && IsCurrent(process) &&
           WaitedForId(At(process));
  }

  // The living ranks, the lowest first. A process that uses NCCL stands for its rank, and not a
  // worker that has inherited the rank.
  void FindBest() {
    std::map<int32_t, int32_t> best;
    for (size_t i = 0; i < job_.processes.size(); ++i) {
      const Process& process = job_.processes[i];
      if (process.global_rank < 0 || HasEnded(process)) continue;
      const auto index = static_cast<int32_t>(i);
      const auto [at, is_new] = best.emplace(process.global_rank, index);
      if (!is_new && process.has_segment && !At(at->second).has_segment) at->second = index;
    }
    best_.assign(best.begin(), best.end());
  }

  // How many of them are below this rank: one of those makes the id.
  size_t CountBelow(int32_t rank) const {
    return static_cast<size_t>(
        std::lower_bound(best_.begin(), best_.end(), RankedProcess(rank, -1)) - best_.begin());
  }

  int32_t LeastRank(const std::vector<int32_t>& inside) const {
    int32_t least = INT32_MAX;
    for (const int32_t process : inside) least = std::min(least, At(process).global_rank);
    return least;
  }

  // Which ranks the communicator has is not known. Those that wait for a rank inside have gone on
  // without it; else those that wait for no other.
  std::vector<int32_t> MakersOfAll(const std::vector<int32_t>& inside) {
    const std::string& line = At(inside.front()).place.at;
    const std::vector<bool> for_one = open_.WaitFor(inside);
    std::vector<int32_t> gone_on, busy, below;
    const size_t count = CountBelow(LeastRank(inside));
    open_.looked_at += count;
    for (size_t i = 0; i < count; ++i) {
      const int32_t process = best_[i].second;
      // It is in the same call, and creates the communicator under another id.
      if (IsCurrent(process) && At(process).place.at == line) return {};
      below.push_back(process);
      if (for_one[static_cast<size_t>(process)]) gone_on.push_back(process);
      if (!Waits(process)) busy.push_back(process);
    }
    if (!gone_on.empty()) return gone_on;
    return busy.empty() ? below : busy;
  }

  // A rank below that waits for this one in the communicator of both has made its id.
  std::vector<int32_t> MakersOfPair(int32_t process) {
    const std::unordered_set<int32_t> made = WaitForPairWith(process);
    const size_t count = CountBelow(At(process).global_rank);
    std::vector<int32_t> makers;
    if (count > made.size() + kMostMakers) return makers;
    open_.looked_at += count;
    for (size_t i = 0; i < count; ++i) {
      if (made.count(best_[i].second) == 0) makers.push_back(best_[i].second);
    }
    return makers;
  }

  std::unordered_set<int32_t> WaitForPairWith(int32_t process) {
    std::unordered_set<int32_t> waiting;
    for (const StuckCall* call : open_.Lacking(process)) {
      ++open_.looked_at;
      const bool is_pair = call->kind == StuckCall::Kind::kCreation &&
                           call->communicator->size == 2 && FindPairName(call->communicator->name);
      if (!is_pair) continue;
      for (const Waiter& waiter : call->waiters) waiting.insert(waiter.process);
    }
    return waiting;
  }

  bool Waits(int32_t process) const { return open_.Waits(process) || WaitsForId(process); }

  // It waits, or its last sample shows that it stands. What it does else may come to its end, and
  // then it makes the id: it is late.
  bool IsHeld(int32_t process) const {
    const Process& known = At(process);
    const bool stands = known.waits_outside_since_ns != 0 || known.motion == Motion::kFrozen;
    return Waits(process) || (IsCurrent(process) && stands);
  }

  // Whether one that may owe the id has made calls since, and makes it when it comes to it.
  bool WorkOn(const std::vector<int32_t>& makers, const std::vector<int32_t>& inside) const {
    const int64_t since_ns = WaitsSince(inside.front());
    return std::any_of(makers.begin(), makers.end(), [&](int32_t process) {
      const int64_t newest_ns = newest_calls_[static_cast<size_t>(process)];
      const bool is_new = newest_ns > since_ns && now_ns_ - newest_ns < limits_.suspect_after_ns;
      return is_new && !Waits(process);
    });
  }

  // A sample of the stacks shows the wait when it has lasted for a while. What others wait for has
  // not moved since they began.
  int64_t WaitsSince(int32_t process) const {
    int64_t since_ns = std::max(At(process).waits_outside_since_ns, open_.since_ns());
    for (const StuckCall* call : open_.Lacking(process)) {
      since_ns = std::min(since_ns, call->since_ns);
    }
    return since_ns;
  }

  void Add(const std::vector<int32_t>& inside, const std::vector<int32_t>& makers, Op op,
           StoreWaits* waits) {
    Communicator& comm = waits->communicators.emplace_back();
    StuckCall& call = waits->calls.emplace_back();
    call.kind = StuckCall::Kind::kCreation;
    call.communicator = &comm;
    call.since_ns = INT64_MAX;
    for (const int32_t process : inside) AddWaiter(process, &comm, &call);
    const bool is_open = makers.size() > 1 ? !DoAllWait(makers) : !IsHeld(makers.front());
    for (const int32_t process : makers) AddMaker(process, is_open, &call);
    const bool is_pair = op != Op::kNone;
    comm.size = is_pair ? 2 : static_cast<int32_t>(inside.size() + makers.size());
    comm.name = PlaceInWords(LineOf(At(inside.front())));
    if (comm.name.empty()) comm.name = "torch.distributed";
    call.call.op = is_pair ? op : Op::kCommInitRank;
    if (is_pair) call.call.peer = call.absents.front().rank;
    call.missing_evidence.push_back(
        "which ranks the new communicator has: only the stacks of those that wait for its id in "
        "the store show it");
  }

  static StackPlace LineOf(const Process& process) {
    StackPlace line;
    line.at = process.place.at;
    return line;
  }

  void AddWaiter(int32_t process, Communicator* comm, StuckCall* call) const {
    const int32_t rank = At(process).global_rank;
    const int64_t since_ns = WaitsSince(process);
    Member& member = comm->members[rank];
    member.process = process;
    member.init_entered_ns = since_ns;
    call->waiters.push_back({rank, process, {0, since_ns, Proof::kInferred}});
    call->since_ns = std::min(call->since_ns, since_ns);
  }

  // Whichever of them owes the id, it waits.
  bool DoAllWait(const std::vector<int32_t>& makers) const {
    return std::all_of(makers.begin(), makers.end(),
                       [this](int32_t process) { return Waits(process); });
  }

  // `is_open`: which of several owes the id is not known, or whether it is only late.
  void AddMaker(int32_t process, bool is_open, StuckCall* call) const {
    Member member;
    member.process = process;
    Absent absent = MakeAbsent(job_, At(process).global_rank, member, Lack::kNotEntered);
    absent.at_most = std::min(absent.at_most, is_open ? Certainty::kPossible : Certainty::kLikely);
    call->absents.push_back(absent);
  }

  const JobState& job_;
  const int64_t now_ns_;
  const Limits& limits_;
  OpenCalls open_;
  std::map<Key, std::vector<int32_t>> in_store_;
  std::vector<int64_t> newest_calls_;
  std::vector<RankedProcess> best_;  // by rank
};

}  // namespace

StoreWaits FindStoreWaits(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                          const Limits& limits) {
  if (job.offline || !HasStarted(job)) return {};
  return Search(job, calls, now_ns, limits).Run();
}

}  // namespace rollcall
