// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/awaited_keys.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/progress.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr char kDefaultGroup[] = "default_pg/";
constexpr size_t kMostKeys = 16;
// With more ranks that may set the key than wait for it, nothing shows who is to set it.
constexpr size_t kMostSetters = 8;

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

using NumberedRanks = std::map<int32_t, int32_t>;  // -> process

struct KeyWait {
  NumberedRanks waiting;
  int64_t since_ns = INT64_MAX;
  uint32_t keys = 0;
};

// A process that uses NCCL or gloo stands for its rank, and not a worker that has inherited it.
bool IsBetter(const Process& one, const Process& other) {
  const auto key = [](const Process& p) { return p.has_segment + 2 * !HasEnded(p); };
  return key(one) > key(other);
}

NumberedRanks RanksByJob(const JobState& job) {
  NumberedRanks ranks;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0 || process.holds_several) continue;
    const auto [at, is_new] = ranks.emplace(process.global_rank, static_cast<int32_t>(i));
    const Process& known = job.processes[static_cast<size_t>(at->second)];
    if (!is_new && IsBetter(process, known)) at->second = static_cast<int32_t>(i);
  }
  return ranks;
}

// Where no launcher numbers the ranks, the largest communicator does.
NumberedRanks RanksByCommunicator(const JobState& job) {
  const auto largest = std::max_element(job.communicators.begin(), job.communicators.end(),
                                        [](const auto& a, const auto& b) {
                                          return a.second.members.size() < b.second.members.size();
                                        });
  NumberedRanks ranks;
  if (largest == job.communicators.end()) return ranks;
  for (const auto& [rank, member] : largest->second.members) {
    if (FindProcess(job, member.process) != nullptr) ranks.emplace(rank, member.process);
  }
  return ranks;
}

// The wait of its main thread. Other threads may wait for good: they serve the store's other users.
const BlockedCall* FindKeyWait(const Process& process) {
  const auto at = std::find_if(
      process.blocked.begin(), process.blocked.end(), [&process](const BlockedCall& call) {
        return call.op == Op::kstore_wait && !WaitsBeside(process, call) && !call.key.empty();
      });
  return at == process.blocked.end() || HasEnded(process) ? nullptr : &*at;
}

const BlockedCall* FindKeyWait(const JobState& job, int32_t index) {
  const BlockedCall* wait = FindKeyWait(job.processes[static_cast<size_t>(index)]);
  return wait == nullptr || !IsHeard(job, index) ? nullptr : wait;
}

// In most jobs no rank does, and numbering the ranks of a large one takes long.
bool AnyWaitsForKey(const JobState& job) {
  return std::any_of(job.processes.begin(), job.processes.end(),
                     [](const Process& process) { return FindKeyWait(process) != nullptr; });
}

std::map<std::string, KeyWait> FindWaitsByKey(const JobState& job, const NumberedRanks& ranks) {
  std::map<std::string, KeyWait> waits;
  for (const auto& [rank, process] : ranks) {
    const BlockedCall* call = FindKeyWait(job, process);
    // A rank that waits for a request without a limit is idle.
    if (call == nullptr || call->key_waits_forever || IsKeyOfBackend(call->key)) continue;
    if (waits.size() == kMostKeys && waits.count(call->key) == 0) continue;
    KeyWait& wait = waits[call->key];
    wait.waiting.emplace(rank, process);
    wait.since_ns = std::min(wait.since_ns, call->since_ns);
    wait.keys = std::max(wait.keys, call->keys);
  }
  return waits;
}

void AddKeyWaiters(const JobState& job, const KeyWait& wait, Communicator* comm, StuckCall* call) {
  for (const auto& [rank, process] : wait.waiting) {
    const int64_t since_ns = FindKeyWait(job, process)->since_ns;
    Member& member = comm->members[rank];
    member.process = process;
    call->waiters.push_back({rank, process, {0, since_ns, Proof::kShown}});
  }
}

// `is_open`: nothing shows which of many is to set the key.
void AddSetter(const JobState& job, int32_t rank, int32_t process, bool is_open, StuckCall* call) {
  Member member;
  member.process = process;
  Absent absent = MakeAbsent(job, rank, member, Lack::kNotEntered);
  absent.at_most = std::min(absent.at_most, is_open ? Certainty::kPossible : Certainty::kLikely);
  call->absents.push_back(absent);
}

bool EndedByFault(const Absent& absent) { return absent.failed || MayHaveDied(absent.gone); }

// While one of them lives, it may set the key: then no rank is to blame because it has ended. Of
// those that have ended, one that failed owes the key rather than one that came to its end.
void AddSetters(const JobState& job, const NumberedRanks& ranks, const KeyWait& wait, bool is_open,
                StuckCall* call) {
  for (const auto& [rank, process] : ranks) {
    if (wait.waiting.count(rank) == 0) AddSetter(job, rank, process, is_open, call);
  }
  const auto first_gone =
      std::stable_partition(call->absents.begin(), call->absents.end(),
                            [](const Absent& absent) { return absent.gone == Gone::kNo; });
  if (first_gone != call->absents.begin()) {
    call->absents.erase(first_gone, call->absents.end());
  } else if (std::any_of(first_gone, call->absents.end(), EndedByFault)) {
    call->absents.erase(std::remove_if(first_gone, call->absents.end(), std::not_fn(EndedByFault)),
                        call->absents.end());
  }
}

void AddKeyCall(const JobState& job, const NumberedRanks& ranks, const std::string& key,
                const KeyWait& wait, KeyWaits* waits) {
  Communicator& comm = waits->communicators.emplace_back();
  comm.kind = CommKind::kStore;
  comm.id = segment::HashBytes(key.data(), key.size());
  comm.name = key;
  comm.size = static_cast<int32_t>(ranks.size());
  StuckCall& call = waits->calls.emplace_back();
  call.kind = StuckCall::Kind::kStoreKey;
  call.communicator = &comm;
  call.call.op = Op::kstore_wait;
  call.since_ns = wait.since_ns;
  AddKeyWaiters(job, wait, &comm, &call);
  const size_t others = ranks.size() - wait.waiting.size();
  const bool is_open = others > 1 && others > wait.waiting.size();
  AddSetters(job, ranks, wait, is_open, &call);
  if (wait.keys > 1) {
    call.evidence.push_back(absl::StrCat("the key is the first of ", wait.keys,
                                         " for which they wait: another one may be missing"));
  }
  call.missing_evidence.push_back("which rank is to set the key: the store does not show it");
}

}  // namespace

// torch.distributed puts the prefixes "default_pg", "0/", the number of a further group as "1/",
// and the device as "cpu/" around the store.
bool IsKeyOfBackend(const std::string& key) {
  const size_t begin = key.find(kDefaultGroup);
  if (begin == std::string::npos) return false;
  const std::string rest = key.substr(begin + sizeof(kDefaultGroup) - 1);
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, "//");
  if (!IsNumber(parts.front())) return false;
  const auto device = std::find_if_not(parts.begin(), parts.end(), IsNumber);
  return device != parts.end() && std::next(device) != parts.end();
}

KeyWaits FindKeyWaits(const JobState& job) {
  KeyWaits waits;
  if (job.offline || !AnyWaitsForKey(job)) return waits;
  NumberedRanks ranks = RanksByJob(job);
  if (ranks.empty()) ranks = RanksByCommunicator(job);
  waits.looked_at = ranks.size();
  if (ranks.size() < 2) return waits;
  for (const auto& [key, wait] : FindWaitsByKey(job, ranks)) {
    const size_t others = ranks.size() - wait.waiting.size();
    if (others > std::max(kMostSetters, wait.waiting.size())) continue;
    AddKeyCall(job, ranks, key, wait, &waits);
  }
  return waits;
}

}  // namespace rollcall
