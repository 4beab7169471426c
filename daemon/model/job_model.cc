// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/job_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/model/agreement.h"
#include "daemon/model/arrivals.h"
#include "daemon/model/cut_text.h"
#include "daemon/model/process_texts.h"
#include "daemon/model/progress.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

// Memory for the records of one job, over all members. A job that is too large for a
// useful window of each member keeps only the records of rank 0 of each communicator.
// They show the calls; the signatures show which ranks differ.
constexpr size_t kRecordBytes = size_t{512} << 20;
constexpr size_t kLeastRecords = 16;
constexpr size_t kMostCheckpoints = 256;
// The model trims when its share has shrunk to this part of the last trim's, in quarters.
constexpr size_t kTrimQuarters = 3;
constexpr size_t kUsualKept = 32;  // kinds of calls, of a communicator
constexpr int64_t kLongCallNs = 200'000'000;

// Without the allocator's own bytes.
size_t SiteBytes(const std::string& site) { return sizeof(site) + site.size(); }

bool IsOver(MemberState state) {
  return state == MemberState::kDestroyed || state == MemberState::kAborted ||
         state == MemberState::kFailed;
}

bool SameBlocked(const BlockedCall& a, const BlockedCall& b) {
  return a.thread == b.thread && a.op == b.op && a.communicator == b.communicator &&
         a.since_ns == b.since_ns;
}

// True if the rules on communicators see no difference.
bool SameForRules(const Process& process, const ProcessEvidence& evidence) {
  return process.liveness == evidence.liveness && process.state == evidence.state &&
         process.ended_ns == evidence.ended_ns && process.error == evidence.error &&
// The rules use only whether a count is 0: counts may rise with every call.
#define PROCESS_COUNT(name) (process.name != 0) == (evidence.name != 0) &&
#include "proto/facts.def"
         std::equal(process.blocked.begin(), process.blocked.end(), evidence.blocked.begin(),
                    evidence.blocked.end(), SameBlocked);
}

// The size of the vector is limited anyway; doubling would nearly double it.
template <typename T>
void MakeRoom(size_t most, LazyVector<T>* values) {
  if (values->size() < values->capacity()) return;
  values->reserve(std::max(std::min(values->size() * 2, most), values->size() + 1));
}

// Keeps the newest values.
template <typename T>
void Shrink(size_t kept, LazyVector<T>* values) {
  if (values->size() > kept) values->erase(values->begin(), values->end() - kept);
  if (values->capacity() > kept + kept / 2 + 1) values->shrink_to_fit();
}

size_t CheckpointsKept(size_t records) {
  if (records < kLeastRecords) return 0;
  return std::min(records * JobModel::kCheckpointsOfRecord, kMostCheckpoints);
}

void AddCheckpoints(const CommProgress& progress, size_t kept, Member* member) {
  LazyVector<Checkpoint>* all = &member->checkpoints;
  const size_t skipped = progress.checkpoints.size() - std::min(kept, progress.checkpoints.size());
  for (size_t i = skipped; i < progress.checkpoints.size(); ++i) {
    const Checkpoint& checkpoint = progress.checkpoints[i];
    MakeRoom(kept * 2, all);
    Checkpoint* at = std::lower_bound(
        all->begin(), all->end(), checkpoint,
        [](const Checkpoint& a, const Checkpoint& b) { return a.position < b.position; });
    if (at != all->end() && at->position == checkpoint.position) {
      *at = checkpoint;
    } else {
      all->insert(at, checkpoint);
    }
  }
  Shrink(kept, all);
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

// False: the member has too many peers.
bool CountTraffic(const CallRecord& record, Member* member) {
  if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) return true;
  LazyVector<PeerTraffic>* all = &member->traffic;
  PeerTraffic* at = std::find_if(all->begin(), all->end(),
                                 [&](const PeerTraffic& t) { return t.peer == record.args.peer; });
  if (at == all->end()) {
    if (all->size() >= limits::kPeersOfMember) return false;
    all->push_back({record.args.peer, 0, 0});
    at = all->end() - 1;
  }
  ++(IsSendSide(record.args.op) ? at->sends : at->receives);
  return true;
}

// Inserts a record by its index. False: it replaced a record with the same index.
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

// Learns the usual duration of a call from a wait that has ended. Short waits are
// frequent and alike on all ranks, so those of rank 0 are enough.
void LearnFrom(const Member& before, const CommProgress& progress, int64_t now_ns,
               Communicator* comm) {
  if (before.waiting_since_ns == 0 || progress.finished <= before.finished) return;
  const int64_t duration = now_ns - before.waiting_since_ns;
  if (duration < 0 || (duration < kLongCallNs && progress.rank != 0)) return;
  const CallRecord* record = FindCollective(before, before.Awaits());
  if (record != nullptr) Learn(*record, duration, &comm->usual);
}

}  // namespace

// True if the process is inside a call on the communicator.
bool IsInside(const JobState& state, int32_t process, uint64_t communicator) {
  const std::vector<BlockedCall>& blocked = FindProcess(state, process)->blocked;
  return std::any_of(blocked.begin(), blocked.end(), [communicator](const BlockedCall& b) {
    return b.communicator == communicator;
  });
}

// Data on a communicator that the rules do not read.
struct JobModel::CommBook {
  bool is_split = false;  // a split that is in progress
  int32_t over = 0;       // number of members that have left
  Agreement agreement;
  ArrivalWatch arrivals;
};

JobModel::JobModel(JobKey key, std::shared_ptr<FleetBudget> fleet)
    : share_(std::make_unique<BudgetShare>(fleet == nullptr ? std::make_shared<FleetBudget>()
                                                            : std::move(fleet))) {
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

void JobModel::LimitText(size_t most, std::string* text) {
  if (text->size() <= most) return;
  *text = CutText(*text, most);
  Count(Dropped::kTexts);
}

// For a process whose texts have changed: drops what has no room.
void JobModel::CountTexts(int32_t process) {
  Process* known = &state_.processes[static_cast<size_t>(process)];
  size_t* counted = &text_bytes_[static_cast<size_t>(process)];
  ShrinkTexts(known);
  const size_t bytes = TextBytes(*known);
  if (bytes == *counted) return;
  if (bytes > *counted && !share_->HasRoomForText(bytes - *counted)) {
    const DroppedTexts dropped = DropTexts(*counted, known);
    for (size_t i = 0; i < dropped.texts; ++i) Count(Dropped::kTexts);
    if (dropped.blocked_calls) Count(Dropped::kBlockedCalls);
  }
  share_->text_bytes().Remove(*counted);
  *counted = TextBytes(*known);
  share_->text_bytes().Add(*counted);
}

int32_t JobModel::AddProcess(const std::string& host, int32_t pid, uint64_t start_time) {
  if (state_.processes.size() >= limits::kProcessesOfJob) {
    const auto known = processes_.find(ProcessKey{host, pid, start_time});
    if (known == processes_.end()) Count(Dropped::kProcesses);
    return known == processes_.end() ? -1 : known->second;
  }
  const auto [at, is_new] = processes_.emplace(ProcessKey{host, pid, start_time},
                                               static_cast<int32_t>(state_.processes.size()));
  if (!is_new) return at->second;
  Process process;
  process.host = host;
  process.pid = pid;
  process.start_time = start_time;
  state_.processes.push_back(std::move(process));
  seats_.emplace_back();
  text_bytes_.push_back(0);
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
  LimitText(limits::kName, &known.host);
  LimitText(limits::kName, &known.stacks_off);
#define PROCESS_TEXT(name) LimitText(limits::kCommand, &known.name);
#define PROCESS_PLACE(name) LimitText(limits::kCommand, &known.name);
#include "proto/facts.def"
  CountTexts(process);
  Touch(process);
}

void JobModel::AddSites(int32_t process, size_t first, std::vector<std::string> sites) {
  if (!IsKnown(process)) return;
  std::vector<std::string>& known = state_.processes[static_cast<size_t>(process)].sites;
  if (first > known.size()) return;  // the agent will send a whole update
  CutSites(first, &known);
  for (std::string& site : sites) {
    LimitText(limits::kSite, &site);
    if (known.size() >= limits::kSites || !share_->HasRoomForSite(SiteBytes(site))) {
      Count(Dropped::kSites);
      break;  // the records refer to sites by their index
    }
    share_->site_bytes().Add(SiteBytes(site));
    known.push_back(std::move(site));
  }
  ++version_;
}

void JobModel::CutSites(size_t from, std::vector<std::string>* sites) {
  for (size_t i = from; i < sites->size(); ++i) share_->site_bytes().Remove(SiteBytes((*sites)[i]));
  sites->resize(from);
}

void JobModel::SetEvidence(int32_t process, const ProcessEvidence& evidence) {
  if (!IsKnown(process)) return;
  Process& known = state_.processes[static_cast<size_t>(process)];
  const bool same = SameForRules(known, evidence);
  static_cast<ProcessEvidence&>(known) = evidence;
  LimitText(limits::kError, &known.error);
  LimitText(limits::kName, &known.phase);
  LimitText(limits::kName, &known.wait_channel);
  if (known.blocked.size() > limits::kBlockedCalls) {
    Count(Dropped::kBlockedCalls);
    known.blocked.resize(limits::kBlockedCalls);
  }
  CountTexts(process);
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
  if (agents_.size() >= limits::kAgentsOfJob) {
    const auto known = agents_.find(id);
    if (known == agents_.end()) Count(Dropped::kAgents);
    return known == agents_.end() ? -1 : known->second;
  }
  const auto [at, is_new] = agents_.emplace(id, static_cast<int32_t>(state_.agents.size()));
  if (!is_new) return at->second;
  AgentState& agent = state_.agents.emplace_back();
  agent.id = id;
  agent.host = host;
  processes_of_agents_.emplace_back();
  return at->second;
}

void JobModel::SetAgent(int32_t process, int32_t agent) {
  if (!IsKnown(process) || agent < 0) return;
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

// An agent that was stopped continues without a whole update: it reports only changes.
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
  LimitText(limits::kStackWords, &known.stack_words);
  CountTexts(process);
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

// The number of records for each member, if all have as many.
size_t JobModel::RecordShare() const {
  const size_t of_job = kRecordBytes / std::max<size_t>(share_->members().own(), 1);
  return std::min(std::min(of_job, share_->RecordBytes()) / kBytesOfRecord, kMostRecords);
}

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

void JobModel::ApplyProgress(int32_t process, const CommProgress& progress, int64_t now_ns) {
  if (!IsKnown(process) || progress.id == 0) return;
  if (progress.rank < 0 || progress.rank >= kMaxRanks) return;
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
  if (!progress.name.empty()) {
    comm.name = progress.name;
    LimitText(limits::kName, &comm.name);
  }
  if (comm.size == 0) {
    comm.size = progress.size;
    world_restarts_.Created(comm.size, &state_);
  }
  if (progress.size != 0 && progress.size != comm.size) comm.other_size = progress.size;
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
  book.over -= member.is_over;
  member.is_over = IsOver(progress.state) && !IsInside(state_, process, progress.id);
  book.over += member.is_over;
  LearnFrom(member, progress, now_ns, &comm);
  UpdateAgreement(progress, &book, &comm, member);
  if (progress.finished > member.finished) comm.finish_seen_ns = now_ns;
  CopyProgress(progress, &member);
  if (progress.graph_launches.size() > limits::kGraphLaunches) Count(Dropped::kGraphLaunches);
  comm.may_wait -= member.may_wait;
  member.may_wait =
      WaitsSince(member) != 0 || !member.has_markers || member.state > MemberState::kReady;
  comm.may_wait += member.may_wait;
  const size_t kept = RecordsKept(comm, progress.rank);
  comm.keeps_records = kept >= kLeastRecords;
  AddCheckpoints(progress, CheckpointsKept(kept), &member);
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
      book.arrivals.Add(progress.rank, comm->size, record.position, record.entered_ns);
    }
  }
  if (was_full || records->size() > kept + kept / 2) Shrink(kept, records);
  if (!progress.records.empty() && kept != 0) comm->arrivals = book.arrivals.Score();
}

// False: the communicator or the rank is one too many.
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
  const auto at = state_.communicators.find(grown.unique_id);
  if (at == state_.communicators.end()) return;
  const Communicator joined = std::move(at->second);
  share_->members().Remove(joined.members.size());
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
  share_->members().Remove(members.size());
  const Communicator dropped = std::move(at->second);
  state_.communicators.erase(at);
  const bool is_split = book.is_split;
  books_.erase(communicator);
  if (!is_split) world_restarts_.Dropped(dropped, &state_);
}

}  // namespace rollcall
