// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/network/network_verdict.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/network/network_walk.h"
#include "daemon/diagnosis/network/network_witness.h"
#include "daemon/model/progress.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/evidence.h"
#include "daemon/words/network_words.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// A transfer whose step has waited for less moves. A healthy step of 512 KiB takes so long at
// 0.25 MiB/s only.
constexpr int64_t kStandsAfterNs = 2 * kSecond;

// The samples of one communicator that were read during the wait.
struct Readings {
  std::vector<NetworkSample> samples;
  std::vector<NetworkHost> hosts;  // by sample
  bool any = false, moves = false;
  int64_t oldest_ns = INT64_MAX;  // when the first of them was read
};

// When the transfers of the process were read; 0 if never.
int64_t ReadAt(const Process* process) {
  if (process == nullptr) return 0;
  return process->network_ns != 0 ? process->network_ns : process->stacks_ns;
}

bool Moves(const NetworkSample& sample, int64_t read_ns) {
  return std::any_of(sample.states.begin(), sample.states.end(), [&](const NetworkState& state) {
    if (state.wait == NetworkWait::kNone) return false;
    return state.since_ns == 0 || read_ns - state.since_ns < kStandsAfterNs;
  });
}

Readings ReadingsOf(const JobState& job, const std::vector<NetworkSample>& samples,
                    const Verdict& v) {
  Readings readings;
  std::map<std::string, int32_t> numbers;  // by host
  for (const NetworkSample& sample : samples) {
    const int64_t read_ns = ReadAt(FindProcess(job, sample.process));
    if (sample.communicator != v.communicator || read_ns == 0 || read_ns < v.since_ns) continue;
    readings.samples.push_back(sample);
    readings.any = readings.any || !sample.states.empty();
    readings.oldest_ns = std::min(readings.oldest_ns, read_ns);
    const std::string& host = FindProcess(job, sample.process)->host;
    const auto next = static_cast<int32_t>(numbers.size());
    readings.hosts.push_back({host.empty() ? -1 : numbers.emplace(host, next).first->second, true});
  }
  // Samples of different moments compare only if nothing has moved from the first one on. Files
  // show the last moment of the job, however long that was.
  readings.moves = !job.offline && std::any_of(readings.samples.begin(), readings.samples.end(),
                                               [&](const NetworkSample& sample) {
                                                 return Moves(sample, readings.oldest_ns);
                                               });
  return readings;
}

int32_t ProcessOf(const Readings& readings, const Communicator& comm, int32_t rank) {
  const Member* member = FindMember(comm, rank);
  if (member != nullptr) return member->process;
  for (const NetworkSample& sample : readings.samples) {
    if (sample.rank == rank) return sample.process;
  }
  return -1;
}

// "rank 3 (node-1, device 0)".
std::string EndInWords(const JobState& job, const Readings& readings, const Communicator& comm,
                       int32_t rank) {
  const int32_t process = ProcessOf(readings, comm, rank);
  const Member* member = FindMember(comm, rank);
  const Process* known = FindProcess(job, process);
  const std::string host = known == nullptr ? "" : known->host;
  const bool has_device = member != nullptr && member->device >= 0;
  const std::string device = has_device ? absl::StrCat("device ", member->device) : "";
  const std::string place = absl::StrCat(host, host.empty() || !has_device ? "" : ", ", device);
  return absl::StrCat("rank ", PublicRank(job, process, rank),
                      place.empty() ? "" : absl::StrCat(" (", place, ")"));
}

// Others cannot do their part of the call at all, or have not reached it.
bool AreCulpritsOnBetterGround(const Verdict& v) {
  if (IsAnyStopped(v.culprits)) return true;
  return std::any_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& culprit) {
    return std::find(v.waiting_ranks.begin(), v.waiting_ranks.end(), culprit.rank) ==
           v.waiting_ranks.end();
  });
}

// The ranks whose GPU may be the one at fault. What passes between ranks of one host shows in no
// network state, so a GPU may wait for another one of its host. Markers exclude those that have
// finished the call, and single out those that have not started it.
std::vector<int32_t> Suspects(const JobState& job, const Communicator& comm,
                              const Readings& readings, const NetworkWalk& walk,
                              uint64_t position) {
  if (walk.fault != NetworkFault::kOwnGpu && walk.fault != NetworkFault::kPeerGpu) {
    return {walk.culprit};
  }
  const Process* culprit = FindProcess(job, ProcessOf(readings, comm, walk.culprit));
  std::vector<int32_t> ranks, not_started;
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    const bool is_there = process != nullptr && culprit != nullptr && !culprit->host.empty() &&
                          process->host == culprit->host;
    if (rank != walk.culprit && !is_there) continue;
    if (member.has_markers && member.finished > position) continue;
    ranks.push_back(rank);
    if (HasNotStarted(comm, rank, position)) not_started.push_back(rank);
  }
  return not_started.empty() ? ranks : not_started;
}

// The ranks at the other ends of transfers whose own states are not known.
std::set<int32_t> RanksWithout(const Communicator& comm, const Readings& readings) {
  std::set<int32_t> without;
  for (const NetworkSample& sample : readings.samples) {
    for (const NetworkState& state : sample.states) {
      if (InRange(comm, state.peer)) without.insert(state.peer);
    }
  }
  for (const NetworkSample& sample : readings.samples) {
    if (sample.is_whole) without.erase(sample.rank);
  }
  return without;
}

// Notes which hosts have such a rank.
void MarkHosts(const JobState& job, const Communicator& comm, const std::set<int32_t>& without,
               Readings* readings) {
  std::set<std::string> torn;
  for (const int32_t rank : without) {
    const Process* process = FindProcess(job, ProcessOf(*readings, comm, rank));
    if (process != nullptr) torn.insert(process->host);
  }
  for (size_t i = 0; i < readings->samples.size(); ++i) {
    const Process* process = FindProcess(job, readings->samples[i].process);
    readings->hosts[i].is_whole = torn.count(process->host) == 0;
  }
}

void AddEvidence(const JobState& job, const Communicator& comm, const Readings& readings,
                 const NetworkWalk& walk, Verdict* v) {
  const int64_t since_ns = walk.hops.back().since_ns;
  const int32_t process = ProcessOf(readings, comm, walk.culprit);
  const Process* known = FindProcess(job, process);
  v->evidence.push_back(
      NetworkEvidence(walk, EndInWords(job, readings, comm, walk.culprit),
                      walk.peer < 0 ? "" : EndInWords(job, readings, comm, walk.peer),
                      since_ns == 0 ? 0 : std::max<int64_t>(ReadAt(known) - since_ns, 0)));
  if (walk.channels > 1) {
    v->evidence.push_back(absl::StrCat(walk.agreeing, " of ", walk.channels,
                                       " channels that wait lead to rank ",
                                       PublicRank(job, process, walk.culprit)));
  }
}

void NumberForPeople(const JobState& job, const Communicator& comm, const Readings& readings,
                     NetworkWalk* walk) {
  const auto number = [&](int32_t* rank) {
    if (*rank >= 0) *rank = PublicRank(job, ProcessOf(readings, comm, *rank), *rank);
  };
  number(&walk->culprit);
  number(&walk->peer);
  for (NetworkHop& hop : walk->hops) {
    number(&hop.rank);
    number(&hop.peer);
  }
}

void DropWaiter(int32_t process, int32_t rank, Verdict* v) {
  for (size_t i = 0; i < v->waiting_ranks.size() && v->waiting_ranks.size() > 1; ++i) {
    if (v->waiting_ranks[i] != rank || v->waiting_processes[i] != process) continue;
    v->waiting_ranks.erase(v->waiting_ranks.begin() + static_cast<std::ptrdiff_t>(i));
    v->waiting_processes.erase(v->waiting_processes.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

// Another rank of the culprit's host, which gives it the data without the network.
void MoveWithinHost(int32_t rank, NetworkWalk* walk) {
  if (rank == walk->culprit) return;
  const NetworkHop last = walk->hops.back();
  walk->hops.push_back({rank, walk->culprit, last.channel, NetworkWait::kNone, last.since_ns});
  ShortenWay(walk);
  walk->peer = walk->culprit;
  walk->culprit = rank;
}

void Blame(const JobState& job, const Communicator& comm, const Readings& readings,
           const std::vector<int32_t>& suspects, const NetworkWalk& walk, Verdict* v) {
  v->culprits.clear();
  for (const int32_t rank : suspects) {
    v->culprits.push_back(
        MakeCulprit(job, ProcessOf(readings, comm, rank), rank, FindMember(comm, rank)));
  }
  const bool is_one = suspects.size() == 1;
  if (is_one) DropWaiter(v->culprits.front().process, v->culprits.front().rank, v);
  const NetworkWitness witness = is_one ? SecondWitness(job, *v, walk) : NetworkWitness();
  if (!witness.text.empty()) v->evidence.push_back(witness.text);
  const bool agree = walk.agreeing == walk.channels && v->missing_evidence.empty();
  if (!witness.is_proof || !agree) v->certainty = std::min(v->certainty, Certainty::kLikely);
}

void AddMissing(const JobState& job, const Communicator& comm, const Readings& readings,
                const std::set<int32_t>& without, Verdict* v) {
  if (without.empty()) return;
  std::vector<int32_t> ranks;
  for (const int32_t rank : without) {
    ranks.push_back(PublicRank(job, ProcessOf(readings, comm, rank), rank));
  }
  v->missing_evidence.push_back(
      absl::StrCat("what the transfers over the network of ", RanksInWords(ranks),
                   PluralForm(without.size(), " wait for: its states are unknown",
                              " wait for: their states are unknown")));
}

}  // namespace

void ApplyNetwork(const JobState& job, const std::vector<NetworkSample>& samples,
                  Verdict* verdict) {
  // Of two unordered calls each may hold the other up.
  if (verdict->cause != Cause::kStalledInFlight || !verdict->beside.empty()) return;
  const auto found = job.communicators.find(verdict->communicator);
  if (found == job.communicators.end()) return;
  const Communicator& comm = found->second;
  Readings readings = ReadingsOf(job, samples, *verdict);
  if (!readings.any) return;
  if (readings.moves) {
    verdict->evidence.push_back(
        "transfers of the communicator over the network moved when they were last read");
    return;
  }
  const std::set<int32_t> without = RanksWithout(comm, readings);
  MarkHosts(job, comm, without, &readings);
  NetworkWalk walk = WalkNetwork(readings.samples, comm.size, readings.hosts);
  if (walk.channels == 0) return;
  AddMissing(job, comm, readings, without, verdict);
  if (walk.fault == NetworkFault::kNone) return;
  const std::vector<int32_t> suspects = Suspects(job, comm, readings, walk, verdict->position);
  if (suspects.empty()) return;  // by their markers they have finished the call
  AddEvidence(job, comm, readings, walk, verdict);
  if (suspects.size() == 1) MoveWithinHost(suspects.front(), &walk);
  if (!AreCulpritsOnBetterGround(*verdict)) Blame(job, comm, readings, suspects, walk, verdict);
  NumberForPeople(job, comm, readings, &walk);
  verdict->network = std::move(walk);
}

}  // namespace rollcall
