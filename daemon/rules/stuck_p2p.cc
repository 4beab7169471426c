// FindStuckP2p(): sends and receives that wait for their other end.
//
// The nth send of a rank to a peer matches the peer's nth receive from it. A
// rank works on one operation, or one group of them, at a time; what it issued
// behind that has not begun.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

// The accepted sends and receives of a member whose records are left.
struct Operations {
  const Member* member = nullptr;
  std::vector<const CallRecord*> ops;  // in order of issue
  size_t active_begin = 0;             // what it works on now: [begin, end); behind it nothing has begun
  size_t active_end = 0;
  bool complete = false;  // all of them were counted, so that nth means nth
};

uint64_t Ordinal(const Operations& o, size_t i) {
  return o.member->p2p_entered - std::min<uint64_t>(o.member->p2p_entered, o.ops.size() - i);
}

uint32_t CountOf(const Member& member, int32_t peer, Op op) {
  for (const PeerTraffic& t : member.traffic) {
    if (t.peer == peer) return op == Op::kSend ? t.sends : t.receives;
  }
  return 0;
}

// Without markers only the newest can be told to be worked on.
size_t FirstUnfinished(const Operations& o) {
  if (o.ops.empty()) return 0;
  if (!o.member->has_markers) {
    size_t first = o.ops.size() - 1;
    while (first > 0 && o.ops[first]->group != 0 &&
           o.ops[first - 1]->group == o.ops[first]->group &&
           o.ops[first - 1]->thread == o.ops[first]->thread) {
      --first;
    }
    return first;
  }
  size_t first = 0;
  while (first < o.ops.size() && Ordinal(o, first) < o.member->p2p_finished) ++first;
  return first;
}

Operations OperationsOf(const Member& member) {
  Operations o;
  o.member = &member;
  for (const CallRecord& record : member.records) {
    if (KindOf(record.args.op) == CallKind::kP2p && IsAccepted(record)) o.ops.push_back(&record);
  }
  uint64_t counted = 0;
  for (const PeerTraffic& t : member.traffic) counted += uint64_t{t.sends} + t.receives;
  o.complete = counted == member.p2p_entered;
  o.active_begin = o.active_end = FirstUnfinished(o);
  if (o.active_begin == o.ops.size()) return o;
  const CallRecord& first = *o.ops[o.active_begin];
  do {
    ++o.active_end;
  } while (first.group != 0 && o.active_end < o.ops.size() &&
           o.ops[o.active_end]->group == first.group &&
           o.ops[o.active_end]->thread == first.thread);
  return o;
}

bool SamePair(const CallRecord& a, int32_t peer, Op op) {
  return a.args.peer == peer && a.args.op == op;
}

// This is the nth of its direction with its peer; n from 0.
uint32_t Sequence(const Operations& o, size_t i) {
  const CallArgs& args = o.ops[i]->args;
  uint32_t later = 0;
  for (size_t k = i; k < o.ops.size(); ++k) later += SamePair(*o.ops[k], args.peer, args.op);
  const uint32_t all = CountOf(*o.member, args.peer, args.op);
  return all - std::min(all, later);
}

uint64_t BytesOf(const CallArgs& args) {
  constexpr uint8_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const uint64_t size = args.dtype < sizeof(kSizes) ? kSizes[args.dtype] : 1;
  return args.count * size;
}

enum class Other { kAbsent, kBehind, kThere };

// The other end of an operation with `peer`: the nth in the other direction.
Other FindOther(const Operations& peer, int32_t rank, Op op, uint32_t n, const CallRecord** found) {
  const uint32_t issued = CountOf(*peer.member, rank, op);
  if (issued <= n) return Other::kAbsent;
  uint32_t back = issued - n;  // so many from the newest on
  for (size_t i = peer.ops.size(); i > 0; --i) {
    if (!SamePair(*peer.ops[i - 1], rank, op) || --back != 0) continue;
    *found = peer.ops[i - 1];
    return i - 1 < peer.active_end ? Other::kThere : Other::kBehind;
  }
  return Other::kThere;  // its record is lost, so it was long ago
}

std::optional<Wait> P2pWaitOf(const JobState& job, const Communicator& comm,
                              const Operations& o) {
  const Member& m = *o.member;
  if (HowProcessEnded(job, m.process) != Gone::kNo || o.active_begin == o.ops.size()) {
    return std::nullopt;
  }
  const CallRecord& first = *o.ops[o.active_begin];
  Wait wait{first.position, 0, IsFresh(job, m.process) ? Evidence::kShown : Evidence::kInferred};
  if (m.has_markers && m.p2p_started > m.p2p_finished) {
    wait.since_ns = m.p2p_waiting_since_ns != 0 ? m.p2p_waiting_since_ns : first.entered_ns;
    return wait;
  }
  const Process* process = ProcessOf(job, m.process);
  for (const BlockedCall& blocked : process == nullptr ? std::vector<BlockedCall>()
                                                       : process->blocked) {
    const CallKind kind = KindOf(blocked.op);
    if (blocked.communicator != comm.id) continue;
    if (kind != CallKind::kP2p && (kind != CallKind::kGroup || !LastCallIsP2p(m))) continue;
    wait.since_ns = blocked.since_ns;
    return wait;
  }
  if (m.has_markers || m.host_waits_since_ns == 0 || !LastCallIsP2p(m)) return std::nullopt;
  wait.evidence = Evidence::kInferred;
  wait.since_ns = m.host_waits_since_ns;
  return wait;
}

using AllOperations = std::map<int32_t, Operations>;

void AddPeer(const JobState& job, const Communicator& comm, int32_t peer, Lack lack,
             bool complete, StuckCall* call) {
  for (const Absent& absent : call->absents) {
    if (absent.rank == peer) return;
  }
  const Member* member = FindMember(comm, peer);
  Absent absent;
  if (member != nullptr) {
    absent = MakeAbsent(job, peer, *member, lack);
    if (!complete) absent.at_most = std::min(absent.at_most, Certainty::kLikely);
  } else {
    absent.rank = peer;
    absent.lack = Lack::kUnheard;
    absent.at_most = Certainty::kPossible;
    call->missing_evidence.push_back(
        absl::StrCat("nothing has been heard of ", RanksInWords({peer}), " on ",
                     CommunicatorInWords(comm.id, comm.name)));
  }
  call->absents.push_back(absent);
}

// What one waiting rank works on, and which peers it lacks for that.
StuckCall CallOf(const JobState& job, const Communicator& comm, const AllOperations& all,
                 int32_t rank, const Wait& wait) {
  const Operations& o = all.at(rank);
  StuckCall call;
  call.kind = StuckCall::Kind::kP2p;
  call.communicator = &comm;
  call.position = wait.call;
  call.call = o.ops[o.active_begin]->args;
  call.waiters.push_back({rank, o.member->process, wait});
  call.since_ns = wait.since_ns;
  static const Member* const kNobody = new Member();
  Operations nothing;
  nothing.member = kNobody;
  for (size_t i = o.active_begin; i < o.active_end; ++i) {
    const CallArgs& args = o.ops[i]->args;
    const auto at = all.find(args.peer);
    const Operations& peer = at == all.end() ? nothing : at->second;
    const Op other_op = args.op == Op::kSend ? Op::kRecv : Op::kSend;
    const CallRecord* other = nullptr;
    const Other found = FindOther(peer, rank, other_op, Sequence(o, i), &other);
    if (found != Other::kThere) {
      if (call.absents.empty()) call.call = args;
      AddPeer(job, comm, args.peer,
              found == Other::kAbsent ? Lack::kNotEntered : Lack::kNotMatched,
              o.complete && (at == all.end() || peer.complete), &call);
    } else if (other != nullptr && BytesOf(other->args) != BytesOf(args)) {
      if (!call.size_differs) call.call = args;
      call.size_differs = true;
      call.other_end = other->args;
      call.other_rank = args.peer;
    }
  }
  return call;
}

// Calls with one story: the same peers are lacking, or none.
auto StoryOf(const StuckCall& call) {
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

void FindStuckP2p(const JobState& job, const Communicator& comm, std::vector<StuckCall>* calls) {
  AllOperations all;
  for (const auto& [rank, member] : comm.members) {
    if (InRange(comm, rank)) all.emplace(rank, OperationsOf(member));
  }
  std::map<decltype(StoryOf(StuckCall())), StuckCall> stories;
  for (const auto& [rank, o] : all) {
    const std::optional<Wait> wait = P2pWaitOf(job, comm, o);
    if (!wait) continue;
    StuckCall call = CallOf(job, comm, all, rank, *wait);
    auto story = StoryOf(call);
    const auto [at, is_new] = stories.emplace(std::move(story), call);
    if (!is_new) Merge(call, &at->second);
  }
  for (auto& [story, call] : stories) calls->push_back(std::move(call));
}

}  // namespace rollcall
