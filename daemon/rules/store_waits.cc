// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/store_waits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/model/progress.h"
#include "daemon/model/wait_frames.h"
#include "daemon/rules/members/pair_names.h"
#include "daemon/rules/rules.h"
#include "daemon/words/places.h"

namespace rollcall {
namespace {

constexpr size_t kMostStoreCalls = 16;
// With more ranks that may owe the id, nothing shows who owes it.
constexpr size_t kMostMakers = 8;

bool ContainsOne(const std::string& functions, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&functions](const char* word) { return absl::StrContains(functions, word); });
}

// Inside a call of torch.distributed that gets an id from the store.
bool WaitsForId(const Process& process) {
  if (process.waits_outside_since_ns == 0 || process.global_rank < 0 || HasEnded(process)) {
    return false;
  }
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

class Search {
 public:
  Search(const JobState& job, const StuckCalls& calls) : job_(job), calls_(calls) {
    for (size_t i = 0; i < job.processes.size(); ++i) {
      const Process& process = job.processes[i];
      const auto index = static_cast<int32_t>(i);
      if (!WaitsForId(process) || !IsHeard(job, index)) continue;
      const Op op = MessageOf(process);
      // A message has two ends, so each rank that waits to exchange one has its own call.
      in_store_[{process.place.at, op, op == Op::kNone ? -1 : index}].push_back(index);
    }
  }

  StoreWaits Run() {
    StoreWaits waits;
    for (const auto& [key, inside] : in_store_) {
      if (waits.calls.size() == kMostStoreCalls) break;
      const Op op = std::get<Op>(key);
      const std::vector<int32_t> makers =
          op == Op::kNone ? MakersOfAll(inside) : MakersOfPair(inside.front());
      if (!makers.empty() && makers.size() <= kMostMakers) Add(inside, makers, op, &waits);
    }
    return waits;
  }

 private:
  using Key = std::tuple<std::string, Op, int32_t>;  // line, Send or Recv, process

  const Process& At(int32_t process) const { return job_.processes[static_cast<size_t>(process)]; }

  // The living ranks below those inside: one of them makes the id.
  std::vector<int32_t> RanksBelow(const std::vector<int32_t>& inside) {
    if (best_.empty()) FindBest();
    int32_t least = INT32_MAX;
    for (const int32_t process : inside) least = std::min(least, At(process).global_rank);
    std::vector<int32_t> below;
    for (auto at = best_.begin(); at != best_.end() && at->first < least; ++at) {
      below.push_back(at->second);
    }
    return below;
  }

  // A process that uses NCCL stands for its rank, and not a worker that has inherited the rank.
  void FindBest() {
    for (size_t i = 0; i < job_.processes.size(); ++i) {
      const Process& process = job_.processes[i];
      if (process.global_rank < 0 || HasEnded(process)) continue;
      const auto index = static_cast<int32_t>(i);
      const auto [at, is_new] = best_.emplace(process.global_rank, index);
      if (!is_new && process.has_segment && !At(at->second).has_segment) at->second = index;
    }
  }

  // By process: whether it waits in a call that lacks one of `awaited`; if none is given, in any.
  std::vector<bool> FindWaiting(const std::vector<int32_t>* awaited) const {
    std::vector<bool> waiting(job_.processes.size()), is_awaited(job_.processes.size());
    if (awaited != nullptr) {
      for (const int32_t process : *awaited) is_awaited[static_cast<size_t>(process)] = true;
    }
    for (const StuckCall* call : calls_) {
      const bool lacks_one =
          awaited == nullptr ||
          std::any_of(call->absents.begin(), call->absents.end(), [&](const Absent& absent) {
            return FindProcess(job_, absent.process) != nullptr &&
                   is_awaited[static_cast<size_t>(absent.process)];
          });
      if (!lacks_one) continue;
      for (const Waiter& waiter : call->waiters) {
        if (waiter.process >= 0) waiting[static_cast<size_t>(waiter.process)] = true;
      }
    }
    return waiting;
  }

  // Which ranks the communicator has is not known. Those that wait for a rank inside have gone on
  // without it; else those that wait for nobody.
  std::vector<int32_t> MakersOfAll(const std::vector<int32_t>& inside) {
    const std::vector<int32_t> below = RanksBelow(inside);
    const std::vector<bool> for_one = FindWaiting(&inside), for_any = FindWaiting(nullptr);
    std::vector<int32_t> gone_on, busy;
    for (const int32_t process : below) {
      // It is in the same call, and creates the communicator under another id.
      if (At(process).place.at == At(inside.front()).place.at) return {};
      if (for_one[static_cast<size_t>(process)]) gone_on.push_back(process);
      const bool waits = for_any[static_cast<size_t>(process)] || WaitsForId(At(process));
      if (!waits) busy.push_back(process);
    }
    if (!gone_on.empty()) return gone_on;
    return busy.empty() ? below : busy;
  }

  // A rank below that waits for this one in the communicator of both has made its id.
  std::vector<int32_t> MakersOfPair(int32_t process) {
    const std::set<int32_t> have_made = WaitInPairsFor(process);
    if (best_.empty()) FindBest();
    std::vector<int32_t> makers;
    for (auto at = best_.begin(); at != best_.end() && at->first < At(process).global_rank; ++at) {
      if (makers.size() > kMostMakers) break;
      if (have_made.count(at->second) == 0) makers.push_back(at->second);
    }
    return makers;
  }

  std::set<int32_t> WaitInPairsFor(int32_t process) {
    std::set<int32_t> waiting;
    for (const StuckCall* call : CallsThatLack(process).pairs) {
      for (const Waiter& waiter : call->waiters) waiting.insert(waiter.process);
    }
    return waiting;
  }

  // The calls that lack a process.
  struct LackingCalls {
    int64_t since_ns = INT64_MAX;         // of the first of them
    std::vector<const StuckCall*> pairs;  // those that create a communicator of a pair
  };

  const LackingCalls& CallsThatLack(int32_t process) {
    if (lacking_.empty()) FindLacking();
    return lacking_[static_cast<size_t>(process)];
  }

  void FindLacking() {
    lacking_.resize(job_.processes.size());
    for (const StuckCall* call : calls_) {
      const bool is_pair = call->kind == StuckCall::Kind::kCreation &&
                           FindPairName(call->communicator->name).has_value();
      for (const Absent& absent : call->absents) {
        if (FindProcess(job_, absent.process) == nullptr) continue;
        LackingCalls& lacking = lacking_[static_cast<size_t>(absent.process)];
        lacking.since_ns = std::min(lacking.since_ns, call->since_ns);
        if (is_pair) lacking.pairs.push_back(call);
      }
    }
  }

  // A sample of the stacks shows the wait when it has lasted for a while. What others wait for has
  // not moved since they began.
  int64_t WaitsSince(int32_t process) {
    return std::min(At(process).waits_outside_since_ns, CallsThatLack(process).since_ns);
  }

  void Add(const std::vector<int32_t>& inside, const std::vector<int32_t>& makers, Op op,
           StoreWaits* waits) {
    Communicator& comm = waits->communicators.emplace_back();
    StuckCall& call = waits->calls.emplace_back();
    call.kind = StuckCall::Kind::kCreation;
    call.communicator = &comm;
    call.since_ns = INT64_MAX;
    for (const int32_t process : inside) AddWaiter(process, &comm, &call);
    const bool is_open = makers.size() > 1 && !DoAllWait(makers);
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

  void AddWaiter(int32_t process, Communicator* comm, StuckCall* call) {
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
    const std::vector<bool> waiting = FindWaiting(nullptr);
    return std::all_of(makers.begin(), makers.end(), [&](int32_t process) {
      return waiting[static_cast<size_t>(process)] || WaitsForId(At(process));
    });
  }

  // `is_open`: which of several owes the id is not known.
  void AddMaker(int32_t process, bool is_open, StuckCall* call) const {
    Member member;
    member.process = process;
    Absent absent = MakeAbsent(job_, At(process).global_rank, member, Lack::kNotEntered);
    absent.at_most = std::min(absent.at_most, is_open ? Certainty::kPossible : Certainty::kLikely);
    call->absents.push_back(absent);
  }

  const JobState& job_;
  const StuckCalls& calls_;
  std::map<Key, std::vector<int32_t>> in_store_;
  std::map<int32_t, int32_t> best_;    // by rank
  std::vector<LackingCalls> lacking_;  // by process, when one was asked for
};

}  // namespace

StoreWaits FindStoreWaits(const JobState& job, const StuckCalls& calls) {
  if (job.offline || !HasStarted(job)) return {};
  return Search(job, calls).Run();
}

}  // namespace rollcall
