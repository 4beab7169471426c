// SPDX-License-Identifier: Apache-2.0
// FindStuckP2p(): sends and receives that wait for their other end.
//
// The nth send of a rank to a peer matches the peer's nth receive from it. Signals match
// waits for signals in the same way, on a communicator of their own. A rank executes one
// operation, or one group of operations, at a time; later operations have not begun.
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/members/rank_map.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// The accepted sends and receives of a member, as far as their records are left.
struct Operations {
  const Member* member = nullptr;
  std::vector<const CallRecord*> ops;  // in order of issue
  std::vector<uint32_t> nth;           // by op: number of earlier ones with this peer and direction
  std::map<std::pair<int32_t, bool>, std::vector<size_t>> by_pair;  // peer, IsSendSide()
  size_t active_begin = 0;  // current operations: [begin, end); later ones have not begun
  size_t active_end = 0;
  bool complete = false;  // all operations were counted, so `nth` is exact
  bool held_up = false;   // without markers: inferred from the order of issue alone
  bool blind = false;     // the records of the current operations are lost
};

uint64_t Ordinal(const Operations& o, size_t i) {
  return o.member->p2p_entered - std::min<uint64_t>(o.member->p2p_entered, o.ops.size() - i);
}

uint32_t CountIssued(const Member& member, int32_t peer, bool gives) {
  for (const PeerTraffic& t : member.traffic) {
    if (t.peer == peer) return gives ? t.sends : t.receives;
  }
  return 0;
}

// Number of operations with this peer and direction before those whose records are left.
uint32_t CountBefore(const Operations& o, int32_t peer, bool gives) {
  const auto left = o.by_pair.find({peer, gives});
  const auto known = static_cast<uint32_t>(left == o.by_pair.end() ? 0 : left->second.size());
  const uint32_t all = CountIssued(*o.member, peer, gives);
  return all - std::min(all, known);
}

bool InOneGroup(const CallRecord& a, const CallRecord& b) {
  return a.group != 0 && a.group == b.group && a.thread == b.thread;
}

// Makes the group that begins there the current operations.
void SetActive(size_t begin, Operations* o) {
  o->active_begin = o->active_end = begin;
  if (begin == o->ops.size()) return;
  do {
    ++o->active_end;
  } while (o->active_end < o->ops.size() && InOneGroup(*o->ops[begin], *o->ops[o->active_end]));
}

size_t NewestGroup(const Operations& o) {
  if (o.ops.empty()) return 0;
  size_t first = o.ops.size() - 1;
  while (first > 0 && InOneGroup(*o.ops[first - 1], *o.ops[first])) --first;
  return first;
}

Operations FindOperations(const Member& member) {
  Operations o;
  o.member = &member;
  for (const CallRecord& record : member.records) {
    if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) continue;
    o.by_pair[{record.args.peer, IsSendSide(record.args.op)}].push_back(o.ops.size());
    o.ops.push_back(&record);
  }
  o.nth.resize(o.ops.size());
  for (const auto& [pair, indices] : o.by_pair) {
    uint32_t n = CountBefore(o, pair.first, pair.second);
    for (const size_t i : indices) o.nth[i] = n++;
  }
  uint64_t counted = 0;
  for (const PeerTraffic& t : member.traffic) counted += uint64_t{t.sends} + t.receives;
  o.complete = counted == member.p2p_entered;
  size_t first = 0;
  if (member.has_markers) {
    while (first < o.ops.size() && Ordinal(o, first) < member.p2p_finished) ++first;
    o.blind = first < o.ops.size() && Ordinal(o, first) > member.p2p_finished;
  } else if (!o.complete) {
    first = NewestGroup(o);
  }
  SetActive(first, &o);
  return o;
}

// The state of the other end of an operation.
enum class Other {
  kAbsent,    // the peer has not issued it
  kBehind,    // the peer has issued it behind its current operations
  kNotBegun,  // it is among the peer's current operations, but the GPU has not started it
  kUnknown,
  kThere,  // it has begun, or it ended long ago
};

// Finds the other end without exact counts: the first unfinished operation of one side
// matches the first of the other side.
Other GuessOther(const Operations& o, size_t i, const Operations& peer, int32_t rank,
                 const CallRecord** found) {
  const CallArgs& args = o.ops[i]->args;
  uint32_t n = 0;
  for (size_t k = o.active_begin; k < i; ++k) {
    n += IsSendSide(o.ops[k]->args.op) == IsSendSide(args.op) && o.ops[k]->args.peer == args.peer;
  }
  for (size_t k = peer.active_begin; k < peer.active_end; ++k) {
    const CallArgs& theirs = peer.ops[k]->args;
    if (IsSendSide(theirs.op) == IsSendSide(args.op) || theirs.peer != rank || n-- != 0) continue;
    *found = peer.ops[k];
    const bool begun = !peer.member->has_markers || Ordinal(peer, k) < peer.member->p2p_started;
    return begun ? Other::kThere : Other::kNotBegun;
  }
  return Other::kUnknown;
}

// Finds the other end of an operation with `peer`: the nth one in the other direction.
// If either side has lost records, n is unknown.
Other FindOther(const Operations& o, size_t i, const Operations& peer, int32_t rank,
                const CallRecord** found) {
  if (!o.complete || !peer.complete) return GuessOther(o, i, peer, rank, found);
  const bool gives = !IsSendSide(o.ops[i]->args.op);
  const uint32_t n = o.nth[i];
  const uint32_t before = CountBefore(peer, rank, gives);
  if (n < before) return Other::kThere;  // its record is lost, so it was long ago
  const auto left = peer.by_pair.find({rank, gives});
  if (left == peer.by_pair.end() || n - before >= left->second.size()) return Other::kAbsent;
  const size_t at = left->second[n - before];
  *found = peer.ops[at];
  if (at >= peer.active_end) return Other::kBehind;
  const bool begun = !peer.member->has_markers || Ordinal(peer, at) < peer.member->p2p_started;
  return begun ? Other::kThere : Other::kNotBegun;
}

using AllOperations = std::map<int32_t, Operations>;

// True if all current operations of the rank have their other end.
bool MayFinish(const AllOperations& all, int32_t rank, const Operations& o) {
  for (size_t i = o.active_begin; i < o.active_end; ++i) {
    const CallArgs& args = o.ops[i]->args;
    if (IsSignal(args.op)) continue;  // it does not wait
    const auto peer = all.find(args.peer);
    if (peer == all.end()) return false;
    const CallRecord* other = nullptr;
    const Other found = FindOther(o, i, peer->second, rank, &other);
    if (found != Other::kThere && found != Other::kUnknown) return false;
    if (other != nullptr && MessageBytes(other->args) != MessageBytes(args)) return false;
  }
  return true;
}

// Without markers the progress of a rank is unknown. Assumes the most progress that the order
// of issue allows, from the oldest records on.
void AdvanceWithoutMarkers(AllOperations* all) {
  std::deque<int32_t> ready;
  for (const auto& [rank, o] : *all) ready.push_back(rank);
  for (; !ready.empty(); ready.pop_front()) {
    const int32_t rank = ready.front();
    Operations& o = all->at(rank);
    if (o.member->has_markers || !o.complete) continue;
    while (o.active_begin < o.ops.size() && MayFinish(*all, rank, o)) {
      SetActive(o.active_end, &o);
      // Ranks with matching operations may now make progress.
      for (size_t i = o.active_begin; i < o.active_end; ++i) {
        if (all->count(o.ops[i]->args.peer) != 0) ready.push_back(o.ops[i]->args.peer);
      }
    }
  }
  // A rank whose order blocks no other rank still waits for the newest operation.
  for (auto& [rank, o] : *all) {
    if (o.member->has_markers || !o.complete) continue;
    o.held_up = o.active_begin < o.ops.size();
    if (!o.held_up) SetActive(NewestGroup(o), &o);
  }
}

// True if all current operations are signals: they wait for no rank.
bool OnlySignals(const Operations& o) {
  for (size_t i = o.active_begin; i < o.active_end; ++i) {
    if (!IsSignal(o.ops[i]->args.op)) return false;
  }
  return true;
}

std::optional<Wait> FindP2pWait(const JobState& job, const Communicator& comm,
                                const Operations& o) {
  const Member& m = *o.member;
  if (HowProcessEnded(job, m.process) != Gone::kNo || o.active_begin == o.ops.size() ||
      OnlySignals(o)) {
    return std::nullopt;
  }
  const CallRecord& first = *o.ops[o.active_begin];
  Wait wait{first.position, 0, IsFresh(job, m.process) ? Proof::kShown : Proof::kInferred};
  if (m.has_markers && m.p2p_started > m.p2p_finished) {
    wait.since_ns = m.p2p_waiting_since_ns != 0 ? m.p2p_waiting_since_ns : first.entered_ns;
    if (o.blind) wait.proof = Proof::kIndirect;
    return wait;
  }
  const Process* process = FindProcess(job, m.process);
  for (const BlockedCall& blocked :
       process == nullptr ? std::vector<BlockedCall>() : process->blocked) {
    const CallKind kind = OpKind(blocked.op);
    if (blocked.communicator != comm.id) continue;
    if (kind != CallKind::kP2p && (kind != CallKind::kGroup || !LastCallIsP2p(m))) continue;
    wait.since_ns = blocked.since_ns;
    return wait;
  }
  if (m.has_markers) return std::nullopt;
  const bool is_newest = m.host_waits_since_ns != 0 && LastCallIsP2p(m);
  if (!is_newest && !o.held_up) return std::nullopt;
  wait.proof = is_newest ? Proof::kInferred : Proof::kIndirect;
  wait.since_ns = is_newest            ? m.host_waits_since_ns
                  : process != nullptr ? GpuWaitSince(*process)
                                       : 0;
  return wait.since_ns == 0 ? std::nullopt : std::make_optional(wait);
}

std::string RecordsLost(int32_t peer) {
  return absl::StrCat("records of sends and receives are lost: ", RanksInWords({peer}),
                      " of the communicator may have issued the other end");
}

void AddPeer(const JobState& job, const Communicator& comm, RankFinder* finder, int32_t peer,
             Lack lack, bool complete, StuckCall* call) {
  for (const Absent& absent : call->absents) {
    if (absent.rank == peer) return;
  }
  const Member* member = FindMember(comm, peer);
  Absent absent;
  if (member != nullptr) {
    absent = MakeAbsent(job, peer, *member, lack);
    if (!complete) {
      absent.at_most = Certainty::kPossible;
      call->missing_evidence.push_back(RecordsLost(peer));
    }
  } else {
    const RankRange alone = {peer, peer};
    const auto processes = finder->Find(comm, {alone}).processes;
    absent = MakeUnheard(job, SplitByProcess({alone}, processes).front());
    call->missing_evidence.push_back(absl::StrCat("no report on ", RanksInWords({peer}), " of ",
                                                  CommunicatorInWords(job, comm)));
  }
  call->absents.push_back(absent);
}

// The stuck call of one waiting rank: its current operations and the absent peers.
StuckCall MakeStuckCall(const JobState& job, const Communicator& comm, RankFinder* finder,
                        const AllOperations& all, int32_t rank, const Wait& wait) {
  const Operations& o = all.at(rank);
  StuckCall call;
  call.kind = StuckCall::Kind::kP2p;
  call.communicator = &comm;
  call.position = wait.position;
  call.call = o.ops[o.active_begin]->args;
  call.waiters.push_back({rank, o.member->process, wait});
  call.since_ns = wait.since_ns;
  static const Member* const kNoMember = new Member();
  Operations nothing;
  nothing.member = kNoMember;
  nothing.complete = true;
  for (size_t i = o.active_begin; i < o.active_end; ++i) {
    const CallArgs& args = o.ops[i]->args;
    if (IsSignal(args.op)) continue;
    const auto at = all.find(args.peer);
    const Operations& peer = at == all.end() ? nothing : at->second;
    const CallRecord* other = nullptr;
    const Other found = FindOther(o, i, peer, rank, &other);
    const bool died = MayHaveDied(HowProcessEnded(job, peer.member->process));
    if (found != Other::kThere || died) {
      if (call.absents.empty()) call.call = args;
      const Lack lack = found == Other::kNotBegun ? Lack::kNotStarted
                        : found == Other::kBehind ? Lack::kNotMatched
                        : found == Other::kThere  ? Lack::kGone
                                                  : Lack::kNotEntered;
      AddPeer(job, comm, finder, args.peer, lack, o.complete && peer.complete, &call);
      continue;
    }
    if (!o.complete || !peer.complete) call.missing_evidence.push_back(RecordsLost(args.peer));
    if (other != nullptr && MessageBytes(other->args) != MessageBytes(args)) {
      if (!call.size_differs) call.call = args;
      call.size_differs = true;
      call.is_pair_guessed = !o.complete || !peer.complete;
      call.other_end = other->args;
      call.other_rank = args.peer;
    }
  }
  return call;
}

// Equal for calls with the same absent peers and reasons: FindStuckP2p() merges these.
auto MergeKey(const StuckCall& call) {
  std::vector<std::pair<int32_t, Lack>> lacking;
  for (const Absent& absent : call.absents) lacking.emplace_back(absent.rank, absent.lack);
  std::sort(lacking.begin(), lacking.end());
  int32_t low = -1, high = -1;
  if (call.size_differs && lacking.empty()) {
    low = std::min(call.waiters.front().rank, call.other_rank);
    high = std::max(call.waiters.front().rank, call.other_rank);
  }
  return std::make_tuple(std::move(lacking), low, high);
}

void Merge(const StuckCall& from, StuckCall* into) {
  into->waiters.insert(into->waiters.end(), from.waiters.begin(), from.waiters.end());
  into->since_ns = into->absents.empty() ? std::max(into->since_ns, from.since_ns)
                                         : std::min(into->since_ns, from.since_ns);
}

}  // namespace

void FindStuckP2p(const JobState& job, const Communicator& comm, RankFinder* finder,
                  std::vector<StuckCall>* calls) {
  AllOperations all;
  for (const auto& [rank, member] : comm.members) {
    if (InRange(comm, rank)) all.emplace(rank, FindOperations(member));
  }
  AdvanceWithoutMarkers(&all);
  std::map<decltype(MergeKey(StuckCall())), StuckCall> merged;
  for (const auto& [rank, o] : all) {
    const std::optional<Wait> wait = FindP2pWait(job, comm, o);
    if (!wait) continue;
    StuckCall call = MakeStuckCall(job, comm, finder, all, rank, *wait);
    auto key = MergeKey(call);
    const auto [at, is_new] = merged.emplace(std::move(key), call);
    if (!is_new) Merge(call, &at->second);
  }
  for (auto& [key, call] : merged) calls->push_back(std::move(call));
}

}  // namespace rollcall
