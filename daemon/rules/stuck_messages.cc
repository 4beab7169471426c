// SPDX-License-Identifier: Apache-2.0
// FindStuckMessages(): counted messages that wait for their other end: MPI's, and those of gloo
// with a tag or for any rank. The counts of both ranks show whether it was issued
// (message_counts.h). A rank that waits for several messages needs all of them, but for
// MPI_ANY_SOURCE, MPI_Waitany and MPI_Waitsome: there any one will do, and the ranks that may yet
// send it decide (open_choices.h).
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/message_counts.h"
#include "daemon/model/sent_messages.h"
#include "daemon/rules/members/rank_map.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/terms.h"
#include "interpose/segment_messages.h"

namespace rollcall {
namespace {

constexpr int kMostTags = 3;
// Ranks of a communicator without a report whose processes are searched for. Programs name few.
constexpr size_t kMostUnheardPeers = 256;

// Enough for a master of 500 ranks on each of 500 communicators. Further waits for any rank are
// open.
constexpr size_t kMostChoices = size_t{1} << 18;

// A message of which the other end is lacking.
struct LackingEnd {
  const PeerMessages* messages = nullptr;
  Way way = Way::kReceive;
  bool is_exact = true;
};

struct MessageWaits {
  std::vector<LackingEnd> lacking, issued;
  bool is_choice = false;
  bool is_unknown = false;  // some other ends may have been issued
  bool is_guess = false;    // another thread of the rank waits, too, and may lack its message
};

// What a wait is worth.
enum class Worth : uint8_t {
  kLacks,    // it needs an end that was not issued
  kStalled,  // all ends were issued
  kOpen,     // unknown, or the message for a choice may be under way
};

bool IsChoice(Op op) {
  return op == Op::kMPI_Waitany || op == Op::kMPI_Waitsome || op == Op::kMPI_Testany ||
         op == Op::kMPI_Testsome;
}

bool WaitsForAnyOf(const JobState& job, const Communicator& comm, const Member& member) {
  const Process* process = FindProcess(job, member.process);
  if (process == nullptr) return false;
  return std::any_of(process->blocked.begin(), process->blocked.end(),
                     [&comm](const BlockedCall& blocked) {
                       return blocked.communicator == comm.id && IsChoice(blocked.op);
                     });
}

// The ranks to which others send messages without a tag that are not done. These have records, and
// no counts. Looks once at all members, when it is first asked.
class RecordedSends {
 public:
  explicit RecordedSends(const Communicator& comm) : comm_(comm) {}

  // Whether a rank may get such a message by a receive from any rank with this tag.
  bool MayHave(int32_t rank, int32_t tag) {
    if (!MayHaveP2pRecords(comm_) || tag != 0) return false;
    if (!std::exchange(is_read_, true)) ReadAll();
    return receivers_.count(rank) != 0;
  }

 private:
  void ReadAll() {
    for (const auto& [rank, member] : comm_.members) {
      uint64_t open = member.p2p_entered - std::min(member.p2p_entered, member.p2p_finished);
      for (size_t i = member.records.size(); i-- > 0 && open > 0;) {
        const CallArgs& args = member.records[i].args;
        if (OpKind(args.op) != CallKind::kP2p) continue;
        --open;
        if (IsSendSide(args.op)) receivers_.insert(args.peer);
      }
    }
  }

  const Communicator& comm_;
  bool is_read_ = false;
  std::set<int32_t> receivers_;
};

struct Sends {
  explicit Sends(const Communicator& comm) : counted(comm), recorded(comm) {}
  SentMessages counted;
  RecordedSends recorded;
};

void AddEnd(const Communicator& comm, int32_t rank, const MessageCounts& ours,
            const PeerMessages& with, Way way, Sends* sent, MessageWaits* waits) {
  const bool is_known = with.peer == segment::kAnySource || InRange(comm, with.peer);
  if (AwaitedOf(with, way) == 0 || !is_known) return;
  if (with.peer == segment::kAnySource) {
    waits->is_choice = true;
    waits->is_unknown = waits->is_unknown || sent->counted.MayHave(ours, rank, with.tag) ||
                        sent->recorded.MayHave(rank, with.tag);
    waits->lacking.push_back({&with, way, false});
    return;
  }
  const OtherEnd end = FindOtherEnd(ours, with, way, MessagesOf(FindMember(comm, with.peer)), rank);
  switch (end) {
    case OtherEnd::kIssued:
      waits->issued.push_back({&with, way, true});
      break;
    case OtherEnd::kUnknown:
      waits->is_unknown = true;
      break;
    case OtherEnd::kLacking:
    case OtherEnd::kLackingOfAny:
      waits->lacking.push_back({&with, way, end == OtherEnd::kLacking});
      break;
  }
}

// A send may be done without its other end, so it is not a reason while a receive lacks its own.
void KeepReceives(std::vector<LackingEnd>* lacking) {
  const auto is_send = [](const LackingEnd& end) { return end.way == Way::kSend; };
  if (std::all_of(lacking->begin(), lacking->end(), is_send)) return;
  lacking->erase(std::remove_if(lacking->begin(), lacking->end(), is_send), lacking->end());
}

MessageThreads ThreadsOf(const JobState& job, const Communicator& comm, const Member& member) {
  const Process* process = FindProcess(job, member.process);
  return process == nullptr ? MessageThreads() : FindMessageThreads(*process, comm.id);
}

bool IsAwaited(const PeerMessages& with) {
  return with.sends_awaited != 0 || with.receives_awaited != 0;
}

bool WaitsForAPeer(const MessageCounts& ours) {
  return std::any_of(ours.by_peer.begin(), ours.by_peer.end(),
                     [](const PeerMessages& with) { return with.peer >= 0 && IsAwaited(with); });
}

bool WaitsForCounted(const MessageCounts& ours) {
  return std::any_of(ours.by_peer.begin(), ours.by_peer.end(), IsAwaited);
}

// Beside a main thread that waits for a peer, another one that waits for any rank serves requests.
MessageWaits FindMessageWaits(const JobState& job, const Communicator& comm, int32_t rank,
                              const Member& member, Sends* sent) {
  MessageWaits waits;
  const MessageCounts& ours = MessagesOf(&member);
  const MessageThreads threads = ThreadsOf(job, comm, member);
  waits.is_guess = threads.is_main && threads.is_beside;
  const bool leaves_choices = waits.is_guess && WaitsForAPeer(ours);
  waits.is_choice = WaitsForAnyOf(job, comm, member);
  for (const PeerMessages& with : ours.by_peer) {
    if (leaves_choices && with.peer == segment::kAnySource) continue;
    AddEnd(comm, rank, ours, with, Way::kReceive, sent, &waits);
    AddEnd(comm, rank, ours, with, Way::kSend, sent, &waits);
  }
  if (!waits.is_choice) KeepReceives(&waits.lacking);
  return waits;
}

Worth WorthOf(const MessageWaits& waits) {
  const bool any_lacks = !waits.lacking.empty();
  if (waits.is_choice) {
    return any_lacks && waits.issued.empty() && !waits.is_unknown ? Worth::kLacks : Worth::kOpen;
  }
  // Only sends lack their ends: they may be done, and the wait is for what is not known.
  const bool only_sends = any_lacks && waits.lacking.front().way == Way::kSend;
  if (waits.is_unknown && (only_sends || !any_lacks)) return Worth::kOpen;
  if (any_lacks) return Worth::kLacks;
  return waits.issued.empty() ? Worth::kOpen : Worth::kStalled;
}

Op MessageOp(const Communicator& comm, Way way) {
  if (MayHaveP2pRecords(comm)) return way == Way::kSend ? Op::kSend : Op::kRecv;
  return way == Way::kSend ? Op::kMPI_Send : Op::kMPI_Recv;
}

CallArgs ArgsOf(const Communicator& comm, const LackingEnd& end) {
  CallArgs args;
  args.op = MessageOp(comm, end.way);
  args.peer = end.messages->peer;
  return args;
}

// The ranks that owe a rank its messages.
class Peers {
 public:
  Peers(const JobState& job, const Communicator& comm, RankFinder* finder)
      : job_(job), comm_(comm), finder_(finder) {}

  void Add(int32_t peer, StuckCall* call) {
    const Member* member = FindMember(comm_, peer);
    Absent absent =
        member == nullptr ? Unheard(peer) : MakeAbsent(job_, peer, *member, Lack::kNotEntered);
    absent.at_most = std::min(absent.at_most, Certainty::kLikely);
    call->absents.push_back(absent);
  }

  // All that may send it a message.
  void AddAll(int32_t rank, StuckCall* call) {
    call->absents.clear();
    for (const auto& [peer, member] : comm_.members) {
      if (peer == rank || !InRange(comm_, peer)) continue;
      call->absents.push_back(MakeAbsent(job_, peer, member, Lack::kNotEntered));
      Absent& absent = call->absents.back();
      absent.at_most = std::min(absent.at_most, Certainty::kLikely);
    }
    const std::vector<RankRange> unheard = UnknownRanks(comm_);
    for (const UnknownMember& unknown :
         SplitByProcess(unheard, finder_->Find(comm_, unheard).processes)) {
      call->absents.push_back(MakeUnheard(job_, unknown));
    }
  }

 private:
  // Each search may look at all processes of the job.
  Absent Unheard(int32_t peer) {
    const RankRange alone = {peer, peer};
    const auto [at, is_new] = unheard_.try_emplace(peer);
    if (is_new && unheard_.size() <= kMostUnheardPeers) {
      at->second = finder_->Find(comm_, {alone}).processes;
    }
    return MakeUnheard(job_, SplitByProcess({alone}, at->second).front());
  }

  const JobState& job_;
  const Communicator& comm_;
  RankFinder* const finder_;
  std::map<int32_t, std::map<int32_t, int32_t>> unheard_;  // by rank: its process, if it is known
};

std::string TagInWords(int32_t tag) {
  if (tag == segment::kAnyTag) return "any tag";
  return tag < 0 ? "other tags" : absl::StrCat("tag ", tag);
}

// Of a receive: the peer's messages of other tags that wait for one, "1 with tag 8".
std::string UnreceivedInWords(const MessageCounts& ours, const MessageCounts& theirs,
                              const PeerMessages& awaited, int32_t rank) {
  std::string words;
  int listed = 0;
  for (const PeerMessages* sent : FindUnreceived(ours, theirs, awaited, rank)) {
    if (++listed > kMostTags) break;
    const PeerMessages* received = FindMessages(ours, awaited.peer, sent->tag);
    const uint32_t taken = received == nullptr ? 0 : received->receives;
    absl::StrAppend(&words, words.empty() ? "" : ", ", sent->sends - taken, " with tag ",
                    sent->tag);
  }
  return words.empty() ? "" : absl::StrCat(", and ", words, " that it has not received");
}

bool TagsDiffer(const Communicator& comm, const LackingEnd& end, int32_t rank) {
  const PeerMessages& awaited = *end.messages;
  if (end.way != Way::kReceive || !end.is_exact || awaited.peer < 0) return false;
  // Without a tag, in the records of a group of gloo.
  if (IsSendSide(OpTowards(comm, awaited.peer, rank))) return true;
  return !FindUnreceived(MessagesOf(FindMember(comm, rank)),
                         MessagesOf(FindMember(comm, awaited.peer)), awaited, rank)
              .empty();
}

// "rank 1 has sent it 2, and 1 with tag 8 that it has not received"
std::string CountsInWords(const JobState& job, const Communicator& comm, const LackingEnd& end,
                          int32_t rank) {
  const PeerMessages& awaited = *end.messages;
  const Member* peer = FindMember(comm, awaited.peer);
  const MessageCounts& theirs = MessagesOf(peer);
  const PeerMessages* exact = awaited.tag < 0 ? nullptr : FindMessages(theirs, rank, awaited.tag);
  const Way way = OtherWay(end.way);
  const uint32_t issued =
      end.is_exact ? (exact == nullptr ? 0 : IssuedOf(*exact, way)) : CountWith(theirs, rank, way);
  const int32_t process = peer == nullptr ? -1 : peer->process;
  const std::string who = RanksInWords({PublicRank(job, process, awaited.peer)});
  if (end.way == Way::kSend) return absl::StrCat(who, " has begun to receive ", issued);
  const MessageCounts& ours = MessagesOf(FindMember(comm, rank));
  return absl::StrCat(who, " has sent it ", issued, end.is_exact ? "" : " with all tags",
                      UnreceivedInWords(ours, theirs, awaited, rank));
}

// `is_choice`: the first of several messages of the peer will do, and it is unknown which one that
// is.
void DescribeEnd(const JobState& job, const Communicator& comm, const LackingEnd& end, int32_t rank,
                 int32_t process, bool is_choice, StuckCall* call) {
  const PeerMessages& with = *end.messages;
  const std::string who = RanksInWords({PublicRank(job, process, rank)});
  if (with.peer == segment::kAnySource) {
    call->evidence.push_back(
        absl::StrCat(who, ": waits for a message of any rank with ", TagInWords(with.tag)));
    return;
  }
  const std::string which =
      with.tag < 0 || is_choice ? "a message" : absl::StrCat("message #", AwaitedOf(with, end.way));
  call->evidence.push_back(absl::StrCat(who, ": waits for ", which, " with ", TagInWords(with.tag),
                                        "; ", CountsInWords(job, comm, end, rank)));
  if (end.is_exact) return;
  call->missing_evidence.push_back(
      absl::StrCat("which message ", who, " lacks: its tags are counted together"));
}

StuckCall MakeBareCall(const JobState& job, const Communicator& comm, int32_t rank,
                       const Member& member) {
  StuckCall call;
  call.kind = StuckCall::Kind::kP2p;
  call.communicator = &comm;
  call.position = member.entered;
  call.call.op = MessageOp(comm, Way::kReceive);
  const MessageThreads threads = ThreadsOf(job, comm, member);
  call.is_beside = threads.is_beside && !threads.is_main;
  // Another thread may have listened for long.
  call.since_ns = std::max(member.p2p_waiting_since_ns, threads.main_since_ns);
  const Proof proof = HostProof(job, comm, member);
  call.waiters.push_back({rank, member.process, {call.position, call.since_ns, proof}});
  return call;
}

// No rank is to blame for the wait, nor its rank for the waits of others (open_choices.h).
StuckCall MakeOpenCall(StuckCall call) {
  call.is_choice = true;
  call.absents.emplace_back();
  return call;
}

StuckCall MakeStalledCall(const MessageWaits& waits, StuckCall call) {
  call.call = ArgsOf(*call.communicator, waits.issued.front());
  if (!MayHaveP2pRecords(*call.communicator)) {
    call.missing_evidence.push_back(
        "whether the message is under way: MPI may move it only when its sender makes a call");
  }
  return call;
}

void MakeGuess(const JobState& job, int32_t rank, int32_t process, StuckCall* call) {
  for (Absent& absent : call->absents) {
    absent.at_most = std::min(absent.at_most, Certainty::kPossible);
  }
  call->missing_evidence.push_back(
      absl::StrCat("which of its threads ", RanksInWords({PublicRank(job, process, rank)}),
                   " needs: another one beside the main one waits for messages, too"));
}

StuckCall MakeLackingCall(const JobState& job, const Communicator& comm, const MessageWaits& waits,
                          Peers* peers, StuckCall call) {
  const auto [rank, process, wait] = call.waiters.front();
  call.call = ArgsOf(*call.communicator, waits.lacking.front());
  std::set<int32_t> described;
  for (const LackingEnd& end : waits.lacking) {
    const int32_t peer = end.messages->peer;
    if (!described.insert(peer).second) continue;
    call.tags_differ = call.tags_differ || TagsDiffer(comm, end, rank);
    DescribeEnd(job, comm, end, rank, process, waits.is_choice, &call);
    if (peer == segment::kAnySource) {
      peers->AddAll(rank, &call);
      break;
    }
    // Counts are not records: of a rank that goes on with other messages they may be old.
    peers->Add(peer, &call);
  }
  call.is_choice = waits.is_choice && call.absents.size() > 1;
  if (waits.is_guess) MakeGuess(job, rank, process, &call);
  return call;
}

// Equal for calls that lack the same ranks.
std::vector<int32_t> LackedRanks(const StuckCall& call) {
  std::vector<int32_t> ranks;
  for (const Absent& absent : call.absents) ranks.push_back(absent.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void MergeInto(const StuckCall& from, StuckCall* into) {
  into->waiters.insert(into->waiters.end(), from.waiters.begin(), from.waiters.end());
  into->evidence.insert(into->evidence.end(), from.evidence.begin(), from.evidence.end());
  into->since_ns = std::min(into->since_ns, from.since_ns);
  into->tags_differ = into->tags_differ || from.tags_differ;
}

}  // namespace

void FindStuckMessages(const JobState& job, const Communicator& comm, RankFinder* finder,
                       std::vector<StuckCall>* calls) {
  std::map<std::tuple<bool, bool, std::vector<int32_t>>, StuckCall> merged;
  Sends sent(comm);
  Peers peers(job, comm, finder);
  size_t choices = 0;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.p2p_waiting_since_ns == 0) continue;
    if (HowProcessEnded(job, member.process) != Gone::kNo) continue;
    if (MayHaveP2pRecords(comm) && !WaitsForCounted(MessagesOf(&member))) continue;
    const MessageWaits waits = FindMessageWaits(job, comm, rank, member, &sent);
    StuckCall call = MakeBareCall(job, comm, rank, member);
    Worth worth = WorthOf(waits);
    if (waits.is_choice && worth == Worth::kLacks) choices += comm.members.size();
    if (choices > kMostChoices) worth = Worth::kOpen;
    if (worth == Worth::kOpen) {
      calls->push_back(MakeOpenCall(std::move(call)));
    } else if (worth == Worth::kStalled) {
      calls->push_back(MakeStalledCall(waits, std::move(call)));
    } else {
      call = MakeLackingCall(job, comm, waits, &peers, std::move(call));
      const auto key = std::make_tuple(call.is_choice, call.is_beside, LackedRanks(call));
      const auto [at, is_new] = merged.emplace(key, call);
      if (!is_new) MergeInto(call, &at->second);
    }
  }
  for (auto& [key, call] : merged) calls->push_back(std::move(call));
}

const Absent* FindOddSender(const StuckCall& call) {
  if (call.kind != StuckCall::Kind::kP2p || !call.communicator->counts_messages) return nullptr;
  for (const Waiter& waiter : call.waiters) {
    for (const PeerMessages& awaited :
         MessagesOf(FindMember(*call.communicator, waiter.rank)).by_peer) {
      if (!IsOddSender(*call.communicator, waiter.rank, awaited)) continue;
      const auto at = std::find_if(call.absents.begin(), call.absents.end(),
                                   [&awaited](const Absent& a) { return a.rank == awaited.peer; });
      if (at != call.absents.end()) return &*at;
    }
  }
  return nullptr;
}

Op AwaitedTowards(const Communicator& comm, int32_t rank, int32_t peer) {
  for (const PeerMessages& with : MessagesWith(MessagesOf(FindMember(comm, rank)), peer)) {
    if (with.receives_awaited != 0) return MessageOp(comm, Way::kReceive);
    if (with.sends_awaited != 0) return MessageOp(comm, Way::kSend);
  }
  return Op::kNone;
}

}  // namespace rollcall
