// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/job_model.h"

#include <algorithm>
#include <utility>

#include "daemon/model/agreement.h"
#include "daemon/model/arrivals.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/member_records.h"
#include "daemon/model/message_counts.h"
#include "daemon/model/process_texts.h"
#include "daemon/model/progress.h"
#include "daemon/model/usual_durations.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

// The model trims when its share has shrunk to this part of the last trim's, in quarters.
constexpr size_t kTrimQuarters = 3;

bool IsOver(MemberState state) {
  return state == MemberState::kDestroyed || state == MemberState::kAborted ||
         state == MemberState::kFailed;
}

void CopyProgress(const CommProgress& progress, Member* member) {
  static_cast<CommFacts&>(*member) = progress;
  member->graph_launches = LazyVector<GraphLaunch>();
  const size_t launches = std::min(progress.graph_launches.size(), limits::kGraphLaunches);
  if (launches != 0) member->graph_launches.reserve(launches);
  for (size_t i = progress.graph_launches.size() - launches; i < progress.graph_launches.size();
       ++i) {
    member->graph_launches.push_back(progress.graph_launches[i]);
  }
}

// Their sums by peer are the traffic, as the records of other messages give it.
void SetMessages(std::shared_ptr<const MessageCounts> messages, int64_t now_ns, Member* member) {
  member->messages = NoteMoves(std::move(messages), member->messages.get(), now_ns);
  member->traffic = LazyVector<PeerTraffic>();
  for (const PeerMessages& with : member->messages->by_peer) {
    if (with.peer < 0) continue;
    const bool is_new = member->traffic.empty() || member->traffic.back().peer != with.peer;
    if (is_new) member->traffic.push_back({with.peer, 0, 0});
    member->traffic.back().sends += with.sends;
    member->traffic.back().receives += with.receives;
  }
}

bool IsBeingCreated(MemberState state) {
  return state == MemberState::kInitializing || state == MemberState::kFailed;
}

// True if the process is inside a call on the communicator.
bool IsInside(const JobState& state, int32_t process, uint64_t communicator) {
  const std::vector<BlockedCall>& blocked = FindProcess(state, process)->blocked;
  return std::any_of(blocked.begin(), blocked.end(), [communicator](const BlockedCall& b) {
    return b.communicator == communicator;
  });
}

}  // namespace

// Data on a communicator that the rules do not read.
struct JobModel::CommBook {
  bool is_split = false;  // a split that is in progress
  int32_t over = 0;       // number of members that have left
  Agreement agreement;
  ArrivalWatch arrivals;
};

JobModel::JobModel(JobKey key, std::shared_ptr<FleetBudget> fleet, const std::string& user)
    : share_(std::make_unique<BudgetShare>(
          fleet == nullptr ? std::make_shared<FleetBudget>() : std::move(fleet), user)) {
  state_.key = std::move(key);
}
JobModel::JobModel(JobModel&&) noexcept = default;
JobModel& JobModel::operator=(JobModel&&) noexcept = default;
JobModel::~JobModel() = default;

bool JobModel::IsKnown(int32_t process) const { return FindProcess(state_, process) != nullptr; }

DroppedCounts JobModel::TakeDropped() {
  if (!has_dropped_) return {};
  has_dropped_ = false;
  return std::exchange(dropped_, {});
}

void JobModel::SetSeats(uint64_t communicator, const std::vector<int32_t>& processes) {
  const auto comm = state_.communicators.find(communicator);
  if (comm == state_.communicators.end()) return;
  comm->second.seats = LazyVector<int32_t>();
  for (const int32_t process : processes) comm->second.seats.push_back(process);
  comm->second.version = ++version_;
}

// The number of records for each member, if all have as many.
size_t JobModel::RecordShare() const {
  return std::min(share_->RecordBytes() / kBytesOfRecord, kMostRecords);
}

// A job that is too large for a useful window of each member keeps only the records of rank 0 of
// each communicator. They show the calls; the signatures show which ranks differ.
size_t JobModel::RecordsKept(const Communicator& comm, int32_t rank) const {
  const size_t each = RecordShare();
  if (each >= kLeastRecords) return each;
  if (rank != 0) return 0;
  return std::clamp<size_t>(comm.members.size() / 4, 2, kMostRecords);
}

void JobModel::TrimRecords() {
  const size_t share = RecordShare();
  if (share > trimmed_to_) trimmed_to_ = share;
  if (share > trimmed_to_ * kTrimQuarters / 4) return;
  trimmed_to_ = share;
  ++version_;
  for (auto& [id, comm] : state_.communicators) {
    for (auto& [rank, member] : comm.members) {
      const size_t kept = RecordsKept(comm, rank);
      comm.keeps_records = kept >= kLeastRecords;
      Shrink(kept, &member.records);
      member.messages = LimitMessages(std::move(member.messages), kept);
      Shrink(CheckpointsKept(kept), &member.checkpoints);
    }
    comm.version = version_;
  }
}

void JobModel::SetProgress(int32_t process, const CommProgress& progress, int64_t now_ns) {
  for (const GrownId& grown : progress.grown) AddGrown(grown);
  const uint64_t id = ResolveId(progress.id);
  if (id == progress.id) return ApplyProgress(process, progress, now_ns);
  CommProgress renamed = progress;
  renamed.id = id;
  ApplyProgress(process, renamed, now_ns);
}

void JobModel::NoteSize(const CommProgress& progress, Communicator* comm) {
  if (progress.size == 0) return;
  ClaimedSize* claim = std::find_if(comm->claims.begin(), comm->claims.end(),
                                    [&](const ClaimedSize& c) { return c.rank == progress.rank; });
  if (progress.size == comm->size) {
    if (claim != comm->claims.end()) comm->claims.erase(claim, claim + 1);
    return;
  }
  comm->other_size = progress.size;
  if (claim != comm->claims.end()) {
    claim->size = progress.size;
  } else if (comm->claims.size() < limits::kClaimedSizes) {
    comm->claims.push_back({progress.rank, progress.size});
  } else {
    Count(Dropped::kSizes);
  }
}

// True if another process joins the communicator with the same rank, while it is created: ranks
// that are numbered twice. The one whose call NCCL has accepted is the member.
bool JobModel::IsRival(int32_t process, const CommProgress& progress) const {
  const auto comm = state_.communicators.find(progress.id);
  if (comm == state_.communicators.end()) return false;
  const auto member = comm->second.members.find(progress.rank);
  if (member == comm->second.members.end() || member->second.process == process) return false;
  if (!IsBeingCreated(progress.state) || !IsBeingCreated(member->second.state)) return false;
  const Process* holder = FindProcess(state_, member->second.process);
  const bool holder_failed = member->second.state == MemberState::kFailed;
  return holder != nullptr &&
         (holder_failed || !HasEnded(*holder) || progress.state == MemberState::kFailed);
}

// True if the process takes the place of the member, whose creating call failed.
bool JobModel::NoteRival(int32_t process, const CommProgress& progress) {
  Communicator& comm = state_.communicators.at(progress.id);
  const Member& holder = comm.members.at(progress.rank);
  const bool is_refused = progress.state == MemberState::kFailed;
  const bool takes_over = holder.state == MemberState::kFailed && !is_refused;
  const Rival rival = takes_over ? Rival{progress.rank, holder.process, true, holder.async_error}
                                 : Rival{progress.rank, process, is_refused, progress.async_error};
  Rival* known = std::find_if(comm.rivals.begin(), comm.rivals.end(),
                              [&](const Rival& r) { return r.process == rival.process; });
  if (known != comm.rivals.end()) {
    *known = rival;
  } else if (comm.rivals.size() < limits::kRivals) {
    comm.rivals.push_back(rival);
  }
  if (!takes_over) TakeSeat(process, progress);
  comm.version = ++version_;
  return takes_over;
}

// A communicator within one process of many (one of its devices each) leaves the ranks of the job
// their numbers.
void JobModel::NoteSiblings(int32_t process, const CommProgress& progress, Communicator* comm) {
  const std::vector<Seat>& seats = seats_[static_cast<size_t>(process)];
  const Process& owner = state_.processes[static_cast<size_t>(process)];
  const bool is_sibling = std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) {
    return seat.communicator == progress.id && seat.rank != progress.rank;
  });
  comm->has_siblings = comm->has_siblings || is_sibling;
  if (!comm->has_siblings || owner.holds_several) return;
  const bool is_shared =
      std::any_of(comm->members.begin(), comm->members.end(),
                  [process](const auto& entry) { return entry.second.process != process; });
  if (!is_shared && owner.world_size > 1) return;
  for (const auto& [rank, member] : comm->members) {
    if (!IsKnown(member.process)) continue;
    Process& known = state_.processes[static_cast<size_t>(member.process)];
    if (!std::exchange(known.holds_several, true)) Touch(member.process);
  }
}

void JobModel::ApplyProgress(int32_t process, const CommProgress& progress, int64_t now_ns) {
  if (!IsKnown(process) || progress.id == 0) return;
  if (progress.rank < 0 || progress.rank >= kMaxRanks) return;
  if (IsRival(process, progress) && !NoteRival(process, progress)) return;
  if (IsTakenByAnother(process, progress) || !MayJoin(process, progress)) return;
  Process& owner = state_.processes[static_cast<size_t>(process)];
  owner.has_met = true;
  owner.waits_outside_since_ns = 0;
  TakeSeat(process, progress);
  Communicator& comm = state_.communicators[progress.id];
  CommBook& book = books_[progress.id];
  if (progress.split_pending) book.is_split = true;
  comm.id = progress.id;
  if (progress.parent != 0) comm.parent = progress.parent;
  SetName(progress.name, &comm);
  comm.kind = progress.kind;
  if (comm.size == 0) {
    comm.size = progress.size;
    world_restarts_.Created(comm.size, &state_);
  }
  NoteSize(progress, &comm);
  comm.uses_p2p = comm.uses_p2p || progress.p2p_entered != 0;
  comm.version = ++version_;

  const size_t members = comm.members.size();
  Member& member = comm.members[progress.rank];
  share_->members().Add(comm.members.size() - members);
  if (member.process != process) {
    book.over -= member.is_over;
    comm.may_wait -= member.may_wait;
    member = Member();
    member.process = process;
  }
  NoteSiblings(process, progress, &comm);
  book.over -= member.is_over;
  member.is_over = IsOver(progress.state) && !IsInside(state_, process, progress.id);
  book.over += member.is_over;
  LearnFrom(member, progress.rank, progress.finished, now_ns, &comm);
  UpdateAgreement(progress, &book, &comm, member);
  if (progress.finished > member.finished) comm.finish_seen_ns = now_ns;
  CopyProgress(progress, &member);
  if (progress.messages != nullptr) {
    SetMessages(LimitMessages(progress.messages, RecordsKept(comm, progress.rank)), now_ns,
                &member);
    comm.counts_messages = true;
  }
  if (progress.graph_launches.size() > limits::kGraphLaunches) Count(Dropped::kGraphLaunches);
  comm.may_wait -= member.may_wait;
  member.may_wait =
      WaitsSince(member) != 0 || !member.has_markers || member.state > MemberState::kReady;
  comm.may_wait += member.may_wait;
  const size_t kept = RecordsKept(comm, progress.rank);
  comm.keeps_records = kept >= kLeastRecords;
  AddCheckpoints(progress.checkpoints, CheckpointsKept(kept), &member);
  AddRecords(progress, kept, &comm, &member);
  DropIfOver(progress.id);
}

// A job with too many hosts begins anew: the hosts of its newest incident matter.
void JobModel::SetHostFacts(const std::string& host, HostFacts facts) {
  auto& all = state_.host_facts;
  if (all.size() >= limits::kHostsWithFacts && all.find(host) == all.end()) {
    for (size_t i = 0; i < all.size(); ++i) Count(Dropped::kHostFacts);
    all.clear();
  }
  all[host] = std::move(facts);
  ++version_;
}

// Keeps the known name where the new one has no room.
void JobModel::SetName(std::string name, Communicator* comm) {
  if (name.empty() || name == comm->name) return;
  LimitText(limits::kName, &name);
  name.shrink_to_fit();
  const size_t known = HeapBytes(comm->name), wanted = HeapBytes(name);
  if (wanted > known && !share_->HasRoomForText(wanted - known)) return Count(Dropped::kTexts);
  share_->text_bytes().Remove(known);
  share_->text_bytes().Add(wanted);
  comm->name = std::move(name);
}

// Takes the communicator out of the state.
Communicator JobModel::Extract(uint64_t id) {
  const auto at = state_.communicators.find(id);
  Communicator comm = std::move(at->second);
  share_->members().Remove(comm.members.size());
  share_->text_bytes().Remove(HeapBytes(comm.name));
  state_.communicators.erase(at);
  books_.erase(id);
  return comm;
}

void JobModel::UpdateAgreement(const CommProgress& progress, CommBook* book, Communicator* comm,
                               const Member& before) {
  if (progress.entered > 0 && progress.signature == 0) comm->may_diverge = true;
  const uint64_t seed = before.entered == 0 ? segment::kSignatureSeed : before.signature;
  bool agrees = book->agreement.AddRecords(before.entered, seed, progress.records, progress.entered,
                                           progress.signature);
  agrees = book->agreement.Add(progress.entered, progress.signature) && agrees;
  for (const Checkpoint& checkpoint : progress.checkpoints) {
    agrees = book->agreement.Add(checkpoint.position, checkpoint.signature) && agrees;
  }
  if (!agrees) comm->may_diverge = true;
}

void JobModel::AddRecords(const CommProgress& progress, size_t kept, Communicator* comm,
                          Member* member) {
  CommBook& book = books_[comm->id];
  LazyVector<CallRecord>* records = &member->records;
  bool was_full = false;
  for (const CallRecord& record : progress.records) {
    if (kept == 0) break;
    // The model has dropped this record already: it must not count it twice.
    if (records->size() >= kept && record.index < records->front().index) continue;
    // Lets the vector grow to one and a half times the limit, to erase many records at once.
    if (records->size() > kept + kept / 2) {
      Shrink(kept, records);
      was_full = true;
    }
    MakeRoom(kept + kept / 2 + 1, records);
    size_t at = 0;
    const bool is_new = Insert(record, records, &at);
    if (at > 0 && Overlap((*records)[at - 1], record)) member->concurrent_use = true;
    if (at + 1 < records->size() && Overlap(record, (*records)[at + 1])) {
      member->concurrent_use = true;
    }
    if (!is_new) continue;
    if (!CountTraffic(record, member)) Count(Dropped::kPeers);
    if (TakesPosition(record)) {
      RecordFirst(record, comm);
      book.arrivals.Add(progress.rank, comm->size, record.position, record.entered_ns);
    }
  }
  if (was_full || records->size() > kept + kept / 2) Shrink(kept, records);
  if (book.arrivals.TakeChanged()) comm->arrivals = book.arrivals.Score();
}

// False if the communicator or the rank is one too many.
bool JobModel::MayJoin(int32_t process, const CommProgress& progress) {
  const std::vector<Seat>& seats = seats_[static_cast<size_t>(process)];
  if (seats.size() >= limits::kCommunicatorsOfProcess &&
      std::none_of(seats.begin(), seats.end(),
                   [&](const Seat& seat) { return seat.index == progress.index; })) {
    Count(Dropped::kCommunicators);
    return false;
  }
  const auto comm = state_.communicators.find(progress.id);
  const bool is_new = comm == state_.communicators.end();
  if (is_new && state_.communicators.size() >= limits::kCommunicatorsOfJob) {
    Count(Dropped::kCommunicators);
    return false;
  }
  if (share_->HasRoomForMember()) return true;
  if (!is_new && comm->second.members.count(progress.rank) != 0) return true;
  Count(Dropped::kMembers);
  return false;
}

// True if a live process of another agent already has this rank. One of the two reports is
// wrong: the model keeps the earlier one.
bool JobModel::IsTakenByAnother(int32_t process, const CommProgress& progress) const {
  const auto comm = state_.communicators.find(progress.id);
  if (comm == state_.communicators.end()) return false;
  const auto member = comm->second.members.find(progress.rank);
  if (member == comm->second.members.end() || member->second.process == process) return false;
  const Process* holder = FindProcess(state_, member->second.process);
  if (holder == nullptr || HasEnded(*holder) || holder->liveness == Liveness::kSilent) return false;
  const int32_t agent = state_.processes[static_cast<size_t>(process)].agent;
  return holder->agent >= 0 && agent >= 0 && holder->agent != agent;
}

// Records that this communicator of the process now stands for this rank.
void JobModel::TakeSeat(int32_t process, const CommProgress& progress) {
  std::vector<Seat>& seats = seats_[static_cast<size_t>(process)];
  auto taken = std::find_if(seats.begin(), seats.end(),
                            [&](const Seat& s) { return s.index == progress.index; });
  if (taken == seats.end()) {
    seats.reserve(seats.size() < 8 ? seats.size() + 2 : seats.size() + seats.size() / 4);
    taken = seats.insert(seats.end(), {progress.index, -1, 0});
  }
  const Seat before = *taken;
  *taken = {progress.index, progress.rank, progress.id};
  if (before.communicator == 0) return;
  if (before.communicator == progress.id && before.rank == progress.rank) return;
  LeaveSeat(before, process);
}

// Called when the process has gone from a split to the child that the split created.
void JobModel::LeaveSeat(const Seat& seat, int32_t process) {
  const auto comm = state_.communicators.find(seat.communicator);
  if (comm == state_.communicators.end()) return;
  const auto member = comm->second.members.find(seat.rank);
  if (member == comm->second.members.end() || member->second.process != process) return;
  // The rank did join: ranks that are still inside the split do not wait for it.
  if (member->second.state == MemberState::kInitializing) {
    member->second.state = MemberState::kReady;
    comm->second.version = ++version_;
  }
  DropIfOver(seat.communicator);
}

// The id that all members share.
uint64_t JobModel::ResolveId(uint64_t reported) const {
  const auto grown = grown_.find(reported);
  return grown == grown_.end() ? reported : grown->second;
}

// Reports of ranks that joined may have arrived before the pair of ids.
void JobModel::AddGrown(const GrownId& grown) {
  if (grown.unique_id == 0 || grown.id == 0 || grown.id == grown.unique_id) return;
  if (grown_.size() >= limits::kGrownIdsOfJob && grown_.count(grown.unique_id) == 0) {
    Count(Dropped::kIds);
    return;
  }
  if (!grown_.emplace(grown.unique_id, grown.id).second) return;
  if (state_.communicators.count(grown.unique_id) == 0) return;
  const Communicator joined = Extract(grown.unique_id);
  Communicator& comm = state_.communicators[grown.id];
  comm.id = grown.id;
  if (comm.size == 0) comm.size = joined.size;
  if (comm.name.empty()) SetName(joined.name, &comm);
  comm.may_diverge = comm.may_diverge || joined.may_diverge;
  comm.uses_p2p = comm.uses_p2p || joined.uses_p2p;
  comm.version = ++version_;
  for (const auto& [rank, member] : joined.members) {
    MoveMember(member, rank, grown.unique_id, &comm);
  }
}

void JobModel::MoveMember(const Member& member, int32_t rank, uint64_t from, Communicator* to) {
  if (!IsKnown(member.process)) return;
  for (Seat& seat : seats_[static_cast<size_t>(member.process)]) {
    if (seat.communicator == from) seat.communicator = to->id;
  }
  for (BlockedCall& call : state_.processes[static_cast<size_t>(member.process)].blocked) {
    call.communicator = ResolveId(call.communicator);
  }
  if (to->members.find(rank) != to->members.end()) return;
  to->members[rank] = member;
  share_->members().Add(1);
  to->may_wait += member.may_wait;
  books_[to->id].over += member.is_over;
}

// Drops a split that all ranks have left, and a communicator that all ranks have
// destroyed: neither can hang.
void JobModel::DropIfOver(uint64_t communicator) {
  const auto at = state_.communicators.find(communicator);
  if (at == state_.communicators.end()) return;
  // The rules must see histories that differ first, even if the job ends at once.
  if (at->second.may_diverge) return;
  const CommBook& book = books_[communicator];
  const auto& members = at->second.members;
  if (book.is_split) {
    const bool left = std::none_of(members.begin(), members.end(), [](const auto& entry) {
      return entry.second.state == MemberState::kInitializing;
    });
    if (!left) return;
  } else if (book.over < at->second.size || book.over < static_cast<int32_t>(members.size())) {
    return;
  }
  const bool is_split = book.is_split;
  const Communicator dropped = Extract(communicator);
  if (!is_split) world_restarts_.Dropped(dropped, &state_);
}

}  // namespace rollcall
