// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/job_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/model/agreement.h"
#include "daemon/model/arrivals.h"
#include "daemon/model/progress.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

// What the records of one job may take, over all members. A job too large for a
// useful window of each member keeps those of rank 0 of each communicator,
// which tell what is called; signatures tell who differs.
constexpr size_t kRecordBytes = size_t{256} << 20;
constexpr size_t kMostRecords = 1024;  // a member
constexpr size_t kLeastRecords = 16;
constexpr size_t kMostCheckpoints = 256;
constexpr size_t kUsualKept = 32;  // kinds of calls, of a communicator
constexpr int64_t kWorthLearning = 200'000'000;

bool IsOver(MemberState state) {
  return state == MemberState::kDestroyed || state == MemberState::kAborted ||
         state == MemberState::kFailed;
}

bool SameBlocked(const BlockedCall& a, const BlockedCall& b) {
  return a.thread == b.thread && a.op == b.op && a.communicator == b.communicator &&
         a.since_ns == b.since_ns;
}

// What the rules look at on communicators.
bool SameForRules(const Process& process, const ProcessEvidence& evidence) {
  return process.liveness == evidence.liveness && process.state == evidence.state &&
         process.ended_ns == evidence.ended_ns && process.error == evidence.error &&
// Rules ask whether anything was lost, not how much: counts may rise with every call.
#define PROCESS_COUNT(name) (process.name != 0) == (evidence.name != 0) &&
#include "proto/facts.def"
         std::equal(process.blocked.begin(), process.blocked.end(), evidence.blocked.begin(),
                    evidence.blocked.end(), SameBlocked);
}

void AddCheckpoints(const CommProgress& progress, size_t kept, Member* member) {
  if (kept == 0) return;
  LazyVector<Checkpoint>* all = &member->checkpoints;
  for (const Checkpoint& checkpoint : progress.checkpoints) {
    Checkpoint* at = std::lower_bound(
        all->begin(), all->end(), checkpoint,
        [](const Checkpoint& a, const Checkpoint& b) { return a.position < b.position; });
    if (at != all->end() && at->position == checkpoint.position) {
      *at = checkpoint;
    } else {
      all->insert(at, checkpoint);
    }
  }
  if (all->size() > kept) all->erase(all->begin(), all->end() - kept);
}

void CopyProgress(const CommProgress& progress, Member* member) {
  static_cast<CommFacts&>(*member) = progress;
  member->graph_launches = LazyVector<GraphLaunch>();
  for (const GraphLaunch& launch : progress.graph_launches) {
    member->graph_launches.push_back(launch);
  }
}

void CountTraffic(const CallRecord& record, Member* member) {
  if (KindOf(record.args.op) != CallKind::kP2p || !Happens(record)) return;
  LazyVector<PeerTraffic>* all = &member->traffic;
  PeerTraffic* at = std::find_if(all->begin(), all->end(),
                                 [&](const PeerTraffic& t) { return t.peer == record.args.peer; });
  if (at == all->end()) {
    all->push_back({record.args.peer, 0, 0});
    at = all->end() - 1;
  }
  ++(Gives(record.args.op) ? at->sends : at->receives);
}

// Inserts by index; true if there was none with it.
bool Insert(const CallRecord& record, LazyVector<CallRecord>* records, size_t* at_index) {
  if (records->empty() || records->back().index < record.index) {
    *at_index = records->size();
    records->push_back(record);
    return true;
  }
  CallRecord* const at =
      std::lower_bound(records->begin(), records->end(), record,
                       [](const CallRecord& a, const CallRecord& b) { return a.index < b.index; });
  *at_index = static_cast<size_t>(at - records->begin());
  if (at->index == record.index) {
    *at = record;
    return false;
  }
  records->insert(at, record);
  return true;
}

void Learn(const CallRecord& record, int64_t duration_ns, std::vector<UsualDuration>* usual) {
  const uint8_t size_class = SizeClass(record.args.count);
  auto at = std::find_if(usual->begin(), usual->end(), [&](const UsualDuration& u) {
    return u.op == record.args.op && u.size_class == size_class;
  });
  if (at == usual->end()) {
    if (usual->size() >= kUsualKept) return;
    usual->push_back({record.args.op, size_class, 0, 0});
    at = usual->end() - 1;
  }
  if (at->seen < UINT32_MAX) ++at->seen;
  at->longest_ns = std::max(duration_ns, at->longest_ns - at->longest_ns / 64);
}

// A wait that is over tells how long such calls take. Short ones are many and
// say the same on all ranks, so that rank 0 speaks for them.
void LearnFrom(const Member& before, const CommProgress& progress, int64_t now_ns,
               Communicator* comm) {
  if (before.waiting_since_ns == 0 || progress.finished <= before.finished) return;
  const int64_t duration = now_ns - before.waiting_since_ns;
  if (duration < 0 || (duration < kWorthLearning && progress.rank != 0)) return;
  const CallRecord* record = FindCollective(before, before.Awaits());
  if (record != nullptr) Learn(*record, duration, &comm->usual);
}

}  // namespace

// The process is inside a call on the communicator.
bool IsInside(const JobState& state, int32_t process, uint64_t communicator) {
  const std::vector<BlockedCall>& blocked = FindProcess(state, process)->blocked;
  return std::any_of(blocked.begin(), blocked.end(), [communicator](const BlockedCall& b) {
    return b.communicator == communicator;
  });
}

// What is kept of a communicator besides its state.
struct JobModel::CommBook {
  bool is_split = false;  // it stands for a split under way
  int32_t over = 0;       // members that can hang no more
  Agreement agreement;
  ArrivalWatch arrivals;
};

JobModel::JobModel(std::string name) { state_.name = std::move(name); }
JobModel::JobModel(JobModel&&) noexcept = default;
JobModel& JobModel::operator=(JobModel&&) noexcept = default;
JobModel::~JobModel() = default;

bool JobModel::IsKnown(int32_t process) const { return FindProcess(state_, process) != nullptr; }

int32_t JobModel::AddProcess(const std::string& host, int32_t pid, uint64_t start_time) {
  const auto [at, is_new] = processes_.emplace(ProcessKey{host, pid, start_time},
                                               static_cast<int32_t>(state_.processes.size()));
  if (!is_new) return at->second;
  Process process;
  process.host = host;
  process.pid = pid;
  process.start_time = start_time;
  state_.processes.push_back(std::move(process));
  seats_.emplace_back();
  before_silence_.push_back(Liveness::kUnknown);
  ++version_;
  return at->second;
}

void JobModel::SetIdentity(int32_t process, const ProcessIdentity& identity) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  std::string host = identity.host.empty() ? known.host : identity.host;
  static_cast<ProcessIdentity&>(known) = identity;
  known.host = std::move(host);
  Touch(process);
}

void JobModel::AddSites(int32_t process, size_t first, std::vector<std::string> sites) {
  if (!IsKnown(process)) return;
  std::vector<std::string>& known = state_.processes[static_cast<size_t>(process)].sites;
  if (first > known.size()) return;  // a whole update will come
  known.resize(first);
  std::move(sites.begin(), sites.end(), std::back_inserter(known));
  ++version_;
}

void JobModel::SetEvidence(int32_t process, const ProcessEvidence& evidence) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  const bool same = SameForRules(known, evidence);
  static_cast<ProcessEvidence&>(known) = evidence;
  known.silent_since_ns = 0;
  for (BlockedCall& call : known.blocked) call.communicator = ResolveId(call.communicator);
  if (same) {
    ++version_;
  } else {
    Touch(process);
  }
}

void JobModel::SetSeats(uint64_t communicator, const std::vector<int32_t>& processes) {
  const auto comm = state_.communicators.find(communicator);
  if (comm == state_.communicators.end()) return;
  comm->second.seats = LazyVector<int32_t>();
  for (const int32_t process : processes) comm->second.seats.push_back(process);
  comm->second.version = ++version_;
}

void JobModel::SetSilent(int32_t process, int64_t since_ns) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  if (HasEnded(known) || known.liveness == Liveness::kSilent) return;
  before_silence_[static_cast<size_t>(process)] = known.liveness;
  known.liveness = Liveness::kSilent;
  known.silent_since_ns = since_ns;
  Touch(process);
}

int32_t JobModel::AddAgent(const std::string& id, const std::string& host) {
  const auto [at, is_new] = agents_.emplace(id, static_cast<int32_t>(state_.agents.size()));
  if (!is_new) return at->second;
  AgentState& agent = state_.agents.emplace_back();
  agent.id = id;
  agent.host = host;
  processes_of_agents_.emplace_back();
  return at->second;
}

void JobModel::SetAgent(int32_t process, int32_t agent) {
  if (!IsKnown(process)) return;
  int32_t& known = state_.processes[static_cast<size_t>(process)].agent;
  if (known == agent) return;
  if (known >= 0) {
    std::vector<int32_t>& before = processes_of_agents_[static_cast<size_t>(known)];
    before.erase(std::remove(before.begin(), before.end(), process), before.end());
  }
  known = agent;
  processes_of_agents_[static_cast<size_t>(agent)].push_back(process);
  Touch(process);
}

void JobModel::SetAgentHeard(int32_t agent, const AgentHeard& heard) {
  AgentHeard& known = state_.agents[static_cast<size_t>(agent)];
  const bool same = known.stale == heard.stale && known.silent == heard.silent &&
                    known.is_settled == heard.is_settled;
  known = heard;
  if (same) return;
  for (const int32_t process : processes_of_agents_[static_cast<size_t>(agent)]) {
    if (HasEnded(state_.processes[static_cast<size_t>(process)])) continue;
    SetSilence(process, heard.silent, heard.heard_ns);
    Touch(process);
  }
}

// An agent that was held goes on where it was: it tells only what has changed since.
void JobModel::SetSilence(int32_t process, bool silent, int64_t since_ns) {
  if (silent) return SetSilent(process, since_ns);
  Process& known = state_.processes[static_cast<size_t>(process)];
  if (known.liveness != Liveness::kSilent) return;
  known.liveness = before_silence_[static_cast<size_t>(process)];
  known.silent_since_ns = 0;
}

void JobModel::SetStacks(int32_t process, const StackFacts& facts) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  known.motion = facts.motion;
  known.stack_words = facts.words;
  known.stacks_ns = facts.now_ns;
  if (!facts.waits_outside) {
    known.waits_outside_since_ns = 0;
  } else if (known.waits_outside_since_ns == 0) {
    known.waits_outside_since_ns = facts.now_ns;
  }
  Touch(process);
}

void JobModel::Touch(int32_t process) {
  ++version_;
  for (const Seat& seat : seats_[static_cast<size_t>(process)]) {
    const auto comm = state_.communicators.find(seat.communicator);
    if (comm != state_.communicators.end()) comm->second.version = version_;
  }
}

size_t JobModel::RecordsKept(const Communicator& comm, int32_t rank) const {
  const size_t each = kRecordBytes / sizeof(CallRecord) / std::max<size_t>(members_, 1);
  if (each >= kLeastRecords) return std::min(each, kMostRecords);
  if (rank != 0) return 0;
  return std::clamp<size_t>(static_cast<size_t>(comm.size) / 4, 2, kMostRecords);
}

void JobModel::SetProgress(int32_t process, const CommProgress& progress, int64_t now_ns) {
  for (const GrownId& grown : progress.grown) AddGrown(grown);
  const uint64_t id = ResolveId(progress.id);
  if (id == progress.id) return ApplyProgress(process, progress, now_ns);
  CommProgress renamed = progress;
  renamed.id = id;
  ApplyProgress(process, renamed, now_ns);
}

void JobModel::ApplyProgress(int32_t process, const CommProgress& progress, int64_t now_ns) {
  if (!IsKnown(process) || progress.id == 0) return;
  if (progress.rank < 0 || progress.rank >= kMaxRanks) return;
  if (IsTakenByAnother(process, progress)) return;
  Process& owner = state_.processes[static_cast<size_t>(process)];
  owner.has_met = true;
  owner.waits_outside_since_ns = 0;
  TakeSeat(process, progress);
  Communicator& comm = state_.communicators[progress.id];
  CommBook& book = books_[progress.id];
  if (progress.split_pending) book.is_split = true;
  comm.id = progress.id;
  if (progress.parent != 0) comm.parent = progress.parent;
  if (!progress.name.empty()) comm.name = progress.name;
  if (comm.size == 0) comm.size = progress.size;
  if (progress.size != 0 && progress.size != comm.size) comm.other_size = progress.size;
  comm.version = ++version_;

  const size_t members = comm.members.size();
  Member& member = comm.members[progress.rank];
  members_ += comm.members.size() - members;
  if (member.process != process) {
    book.over -= member.is_over;
    comm.may_wait -= member.may_wait;
    member = Member();
    member.process = process;
  }
  book.over -= member.is_over;
  member.is_over = IsOver(progress.state) && !IsInside(state_, process, progress.id);
  book.over += member.is_over;
  LearnFrom(member, progress, now_ns, &comm);
  UpdateAgreement(progress, &book, &comm, member);
  CopyProgress(progress, &member);
  comm.may_wait -= member.may_wait;
  member.may_wait =
      WaitsSince(member) != 0 || !member.has_markers || member.state > MemberState::kReady;
  comm.may_wait += member.may_wait;
  const size_t kept = RecordsKept(comm, progress.rank);
  comm.keeps_records = kept >= kLeastRecords;
  AddCheckpoints(progress, comm.keeps_records ? kMostCheckpoints : 0, &member);
  AddRecords(progress, kept, &comm, &member);
  DropIfOver(progress.id);
}

void JobModel::UpdateAgreement(const CommProgress& progress, CommBook* book, Communicator* comm,
                             const Member& before) {
  if (progress.entered > 0 && progress.signature == 0) comm->may_diverge = true;
  const uint64_t seed = before.entered == 0 ? segment::kSignatureSeed : before.signature;
  bool agrees = book->agreement.AddRecords(before.entered, seed, progress.records,
                                            progress.entered, progress.signature);
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
  for (const CallRecord& record : progress.records) {
    if (kept == 0) break;
    // What has been dropped already is old: it must not come back and count twice.
    if (records->size() >= kept && record.index < records->front().index) continue;
    size_t at = 0;
    const bool is_new = Insert(record, records, &at);
    if (at > 0 && Overlap((*records)[at - 1], record)) member->concurrent_use = true;
    if (at + 1 < records->size() && Overlap(record, (*records)[at + 1])) {
      member->concurrent_use = true;
    }
    if (!is_new) continue;
    CountTraffic(record, member);
    if (TakesPosition(record)) {
      book.arrivals.Add(progress.rank, comm->size, record.position, record.entered_ns);
    }
  }
  // Half as many again are kept before the oldest go, so that they go together.
  if (records->size() > kept + kept / 2) {
    records->erase(records->begin(), records->end() - kept);
  }
  if (!progress.records.empty() && kept != 0) comm->arrivals = book.arrivals.Score();
}

// Another agent's process, which is heard and lives, is that rank. One of the two is wrong, and who
// comes later is not believed.
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

// Notes that the block stands for this rank of this communicator now.
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

// The block's owner has gone from a split to the child that the split made.
void JobModel::LeaveSeat(const Seat& seat, int32_t process) {
  const auto comm = state_.communicators.find(seat.communicator);
  if (comm == state_.communicators.end()) return;
  const auto member = comm->second.members.find(seat.rank);
  if (member == comm->second.members.end() || member->second.process != process) return;
  // It did come: whoever is still inside the split must not miss it.
  if (member->second.state == MemberState::kInitializing) {
    member->second.state = MemberState::kReady;
    comm->second.version = ++version_;
  }
  DropIfOver(seat.communicator);
}

// The id that all members share.
uint64_t JobModel::ResolveId(uint64_t told) const {
  const auto grown = grown_.find(told);
  return grown == grown_.end() ? told : grown->second;
}

// Ranks that joined may have told of themselves before this was known.
void JobModel::AddGrown(const GrownId& grown) {
  if (grown.unique_id == 0 || grown.id == 0 || grown.id == grown.unique_id) return;
  if (!grown_.emplace(grown.unique_id, grown.id).second) return;
  const auto at = state_.communicators.find(grown.unique_id);
  if (at == state_.communicators.end()) return;
  const Communicator joined = std::move(at->second);
  members_ -= joined.members.size();
  state_.communicators.erase(at);
  books_.erase(grown.unique_id);
  Communicator& comm = state_.communicators[grown.id];
  comm.id = grown.id;
  if (comm.size == 0) comm.size = joined.size;
  if (comm.name.empty()) comm.name = joined.name;
  comm.may_diverge = comm.may_diverge || joined.may_diverge;
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
  ++members_;
  to->may_wait += member.may_wait;
  books_[to->id].over += member.is_over;
}

// A split that everybody has left, or a communicator that everybody has ended,
// can hang no more.
void JobModel::DropIfOver(uint64_t communicator) {
  const auto at = state_.communicators.find(communicator);
  if (at == state_.communicators.end()) return;
  // Histories that differ must be seen by somebody first, also where they end at once.
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
  members_ -= members.size();
  state_.communicators.erase(at);
  books_.erase(communicator);
}

}  // namespace rollcall
