// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/host_processes.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/collector/process_facts.h"
#include "agent/processes/living_threads.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_namespaces.h"
#include "base/durations.h"
#include "base/shares.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kDiscoverEvery = 2 * kSecond;
constexpr int64_t kScanHostEvery = kSecond;
constexpr int64_t kScanForNewEvery = kSecond / 5;
constexpr int64_t kFirstScanWait = kSecond;
constexpr int64_t kLookForRoomEvery = 10 * kSecond;

PidLookup LookUpPid(const std::string& proc_root, pid_t pid) {
  PidLookup found;
  const auto stat = ReadProcStat(proc_root, pid);
  if (stat.ok()) found.start_time = stat->start_time;
  // A missing entry alone is not proof: /proc may hide the processes of other users (hidepid).
  found.gone = absl::IsNotFound(stat.status()) && kill(pid, 0) != 0 && errno == ESRCH;
  return found;
}

struct OwnView {
  pid_t own_pid = 0;
  std::optional<int64_t> ahead_ns;
};

OwnView ReadOwnView(const std::string& proc_root, pid_t pid) {
  return {ReadOwnPid(proc_root, pid), MonotonicAhead(proc_root, pid)};
}

ScanOptions ScanOptionsFrom(const CollectorOptions& options) {
  ScanOptions scan;
  scan.proc_root = options.proc_root;
  scan.uid = geteuid();
  scan.whole_host = options.whole_host;
  scan.discover_directory = options.discover_directory;
  scan.find_unrecorded = options.whole_host && options.find_unrecorded;
  return scan;
}

SegmentFiles::Options FolderOptionsFrom(const CollectorOptions& options) {
  return {options.directory, options.whole_host,
          absl::StrCat("more than ", options.most_segments, " segments, or more than ",
                       options.most_segment_bytes >> 20,
                       " MiB in them: the others are left out\n"
                       "  remove those of ended jobs, or give jobs folders of their own "
                       "(ROLLCALL_DIR)")};
}

}  // namespace

HostProcesses::HostProcesses(const CollectorOptions& options, FaultLog* faults)
    : options_(options),
      faults_(faults),
      threads_(options.live ? std::make_shared<SpareThreads>(options.least_read_wait_ns) : nullptr),
      clock_(options.live ? std::make_unique<HostClock>() : nullptr),
      watch_(options.live ? std::make_unique<ProcessWatch>(options.proc_root, threads_) : nullptr),
      scan_(options.live ? std::make_unique<HostScan>(ScanOptionsFrom(options), threads_)
                         : nullptr),
      own_namespace_(options.live ? ReadProcPidNamespace(options.proc_root) : 0),
      folder_(FolderOptionsFrom(options), threads_, faults) {}

HostProcesses::~HostProcesses() {
  if (threads_ == nullptr) return;
  // Destroy the readers before Cancel(): closing a file needs a spare thread.
  folder_.waiting()->clear();
  processes_.clear();
  threads_->Cancel();
}

ProcessReads HostProcesses::ReadsOf(int64_t now_ns, const CollectedProcess& process) const {
  return {now_ns, process.seen, process.identity.payer(), options_.proc_root, threads_.get()};
}

void HostProcesses::Look(int64_t now_ns) {
  if (clock_ != nullptr) clock_->Sample();
  const uint64_t next_scan = scan_ == nullptr ? 0 : scan_->begun() + 1;
  const auto has_room = [this] { return HasRoomFor(ProcessId(), 0, SpareThreads::kNobody); };
  if (folder_.Look(now_ns, next_scan, has_room)) SettleNewFiles(now_ns);
  if (!options_.live) return;
  Scan(now_ns);
  MarkEnded(now_ns);
}

size_t HostProcesses::CountLeftOut() const {
  return host_left_out_.size() + folder_.CountLeftOut();
}

// One user has three times what is left for the others, at most. `payer` kNobody: it is not known
// yet whose the segment is.
bool HostProcesses::HasRoomFor(ProcessId id, size_t bytes, int64_t payer) const {
  constexpr size_t kShare = 3;  // of one user, times what is left
  const bool is_shared = options_.live && options_.whole_host && payer != SpareThreads::kNobody;
  size_t segments = folder_.CountWaiting(), own_segments = 0, all_bytes = 0, own_bytes = bytes;
  for (const auto& [other, process] : processes_) {
    if (process.segment.reader() == nullptr || other == id) continue;
    const bool is_own = process.identity.payer() == payer;
    ++segments;
    all_bytes += process.segment.bytes();
    own_segments += is_own ? 1 : 0;
    own_bytes += is_own ? process.segment.bytes() : 0;
  }
  if (segments >= options_.most_segments || all_bytes + bytes > options_.most_segment_bytes) {
    return false;
  }
  if (!is_shared || own_segments == 0) return true;
  return own_segments < kShare * (options_.most_segments - segments) &&
         own_bytes <= kShare * (options_.most_segment_bytes - all_bytes);
}

SegmentOwner HostProcesses::FindSegmentOwner(const NewSegment& file) const {
  const SegmentClaim& claim = file.claim;
  if (!options_.live) return {SegmentOwner::kVisible, {claim.pid, claim.start_time}};
  SeenProcess claimed;
  claimed.id = {claim.pid, claim.start_time};
  const ProcessReads reads(0, claimed, PayerOfReads(options_.proc_root, claim.pid),
                           options_.proc_root, threads_.get());
  const std::optional<PidLookup> pid_lookup = reads.Get(LookUpPid);
  if (!pid_lookup.has_value()) return {};  // the next tick reads again
  const std::shared_ptr<const ScanResult> scan = scan_->newest();
  if (scan == nullptr || scan->number < file.settled_by) {
    return FindOwner(claim, nullptr, *pid_lookup, own_namespace_);
  }
  const std::vector<SegmentMapper> mappers =
      scan->FindMappers(file.reader->file().device(), file.reader->file().inode());
  return FindOwner(claim, &mappers, *pid_lookup, own_namespace_);
}

void HostProcesses::SettleNewFiles(int64_t now_ns) {
  std::map<std::string, NewSegment>* files = folder_.waiting();
  for (auto at = files->begin(); at != files->end();) {
    NewSegment& file = at->second;
    if (options_.live && !file.reader->file().MayBlock()) {
      file.claim = file.reader->file().Claim().value_or(file.claim);
    }
    const SegmentOwner owner = FindSegmentOwner(file);
    if (owner.kind == SegmentOwner::kLater) {
      ++at;
      continue;
    }
    CollectedSegment segment(at->first, std::move(file.reader), file.claim);
    at = files->erase(at);
    AddSegment(owner, std::move(segment), now_ns);
  }
}

// When a process of `rollcall run` has loaded the library last: the library sets this file's time.
// A rank may end before the next usual scan. 0 if never.
int64_t HostProcesses::ReadLoadedTime() const {
  if (options_.discover_directory.empty()) return 0;
  return folder_.ReadTime(options_.discover_directory + "/loaded").value_or(scanned_loaded_ns_);
}

void HostProcesses::Scan(int64_t now_ns) {
  const bool urgent = folder_.CountWaiting() != 0;
  const int64_t loaded_ns = ReadLoadedTime();
  const int64_t usual_ns = options_.whole_host ? kScanHostEvery : kDiscoverEvery;
  const int64_t calm_ns = loaded_ns == scanned_loaded_ns_ ? usual_ns : kScanForNewEvery;
  const uint64_t begun = scan_->begun();
  const int64_t wait_ns =
      begun == 0 ? std::max(kFirstScanWait, options_.scan_wait_ns) : options_.scan_wait_ns;
  const MapsToRead calm_maps = options_.whole_host ? MapsToRead::kChanged : MapsToRead::kNone;
  scan_->Poll(now_ns, urgent ? 0 : calm_ns, urgent ? MapsToRead::kAll : calm_maps, wait_ns);
  if (scan_->begun() != begun) scanned_loaded_ns_ = loaded_ns;
  const std::shared_ptr<const ScanResult> scan = scan_->newest();
  SettleNewFiles(now_ns);
  if (scan == nullptr || scan->number == used_scan_) return;
  used_scan_ = scan->number;
  for (const ScanFault& fault : scan->faults) faults_->Add(fault.text, fault.user);
  if (options_.whole_host) AddHostSegments(*scan, now_ns);
  AddProcessesWithoutSegment(*scan);
}

v1::UnrecordedProcesses HostProcesses::ListUnrecorded() const {
  const std::shared_ptr<const ScanResult> scan = scan_ == nullptr ? nullptr : scan_->newest();
  if (scan == nullptr) return {};
  std::vector<UnrecordedRank> ranks;
  for (const UnrecordedRank& rank : scan->unrecorded) {
    if (processes_.count(rank.process.process) == 0) ranks.push_back(rank);
  }
  v1::UnrecordedProcesses list = ListOf(ranks, scan->unrecorded_left_out, *options_.redactor);
  for (v1::UnrecordedProcess& process : *list.mutable_processes()) {
    v1::Identity* identity = process.mutable_identity();
    if (identity->tenant().empty()) identity->set_tenant(options_.tenant);
    if (identity->stacks_off().empty()) identity->set_stacks_off(options_.stacks_off);
  }
  return list;
}

void HostProcesses::AddHostSegments(const ScanResult& scan, int64_t now_ns) {
  std::map<ProcessId, int64_t> left_out;
  for (const MappedSegment& segment : scan.segments) {
    if (segment.reader == nullptr) continue;
    const ProcessId id = segment.mapper.process;
    const auto known = processes_.find(id);
    const bool has_it = known != processes_.end() && known->second.segment.IsFile(*segment.reader);
    if (has_it) continue;
    const std::vector<SegmentMapper> one = {segment.mapper};
    const SegmentOwner owner = FindOwner(segment.claim, &one, PidLookup(), own_namespace_);
    // Child processes that the owner forked have the segment mapped too.
    if (owner.kind != SegmentOwner::kVisible || !(owner.process == id)) continue;
    // To find out its size, the collector reads the whole segment.
    const auto before = host_left_out_.find(id);
    const bool waits = before != host_left_out_.end() && now_ns < before->second;
    if (waits) {
      left_out.insert(*before);
    } else if (!AddSegment(owner, {"", segment.reader, segment.claim}, now_ns)) {
      left_out[id] = now_ns + kLookForRoomEvery;
    }
  }
  host_left_out_ = std::move(left_out);
}

// Whether the segment, a file of the folder, brings nothing new of the process.
bool HostProcesses::NamesKnownSegment(const SegmentOwner& owner, const CollectedSegment& segment,
                                      CollectedProcess* known) {
  const std::shared_ptr<SegmentReader>& reader = known->segment.reader();
  const bool same = known->segment.IsFile(*segment.reader());
  if (same) known->segment.SetFile(segment.file());
  // The process was reported without a segment and ended before its segment was found.
  const bool is_first = reader == nullptr && owner.kind == SegmentOwner::kEnded &&
                        segment.claim().pid_namespace == own_namespace_;
  // Not visible: two pid namespaces have a process with this pid and start time.
  const bool is_old = same || (owner.kind != SegmentOwner::kVisible && !is_first);
  if (is_old && reader != nullptr) folder_.SetKnown(segment.file(), reader);
  return is_old;
}

// How the process sees itself, and how it was started.
void HostProcesses::ReadView(int64_t now_ns, CollectedProcess* process) const {
  const ProcessReads reads = ReadsOf(now_ns, *process);
  const OwnView view = reads.PaidBy(SpareThreads::kNobody).Get(ReadOwnView).value_or(OwnView());
  process->seen.other_numbers = view.own_pid != process->seen.id.pid;
  process->seen.ahead_ns = view.ahead_ns.value_or(0);
  if (!view.ahead_ns.has_value()) process->seen.wait_floor_ns = now_ns;
  process->identity.ReadLaunch(reads);
}

// False if there is no room for it.
bool HostProcesses::AddSegment(const SegmentOwner& owner, CollectedSegment segment,
                               int64_t now_ns) {
  const ProcessId id = owner.process;
  const std::string file = segment.file();
  const auto at = processes_.find(id);
  CollectedProcess* known = at == processes_.end() ? nullptr : &at->second;
  if (known != nullptr && !file.empty() && NamesKnownSegment(owner, segment, known)) return true;
  // The environment of a known process may be unreadable by now.
  CollectedProcess process = {
      {},
      known == nullptr ? ReportedIdentity(OwnFacts()) : known->identity.Unsent(),
      std::move(segment),
      {},
      known == nullptr ? std::nullopt : known->turn};
  process.seen.id = id;
  process.seen.visible = owner.kind == SegmentOwner::kVisible;
  if (options_.live && process.seen.visible) {
    ReadView(now_ns, &process);
  } else if (options_.live) {
    process.seen.wait_floor_ns = now_ns;
  }
  if (options_.live) process.identity.SetUserIfUnknown(process.segment.reader()->file().user());
  const int64_t payer = process.identity.payer();
  const absl::StatusOr<SegmentSnapshot> snapshot =
      process.segment.ReadFirst(ReadsOf(now_ns, process), clock_.get(), faults_);
  if (!snapshot.ok()) {
    if (!file.empty()) folder_.RetryOrGiveUp(file, now_ns, snapshot.status(), payer);
    return true;
  }
  if (!HasRoomFor(id, process.segment.bytes(), payer)) {
    if (!file.empty()) folder_.LeaveOut(file, now_ns);
    return false;
  }
  process.identity.TakeSegment(*snapshot, options_.live);
  if (known != nullptr && known->seen.ended) {  // keep its exit status
    process.seen.KeepEnd(known->seen);
  } else if (owner.kind == SegmentOwner::kEnded) {
    process.seen.ended = true;
    process.seen.ended_ns = now_ns;
  }
  if (!file.empty()) folder_.SetKnown(file, process.segment.reader());
  if (watch_ != nullptr && process.seen.visible) watch_->Add(id);
  processes_.insert_or_assign(id, std::move(process));
  return true;
}

void HostProcesses::AddProcessesWithoutSegment(const ScanResult& scan) {
  for (const DiscoveredProcess& found : scan.launched) {
    if (!found.is_main || found.rank.coordinates.rank < 0) continue;
    if (processes_.count(found.process) != 0) continue;
    CollectedProcess process = {{}, ReportedIdentity(OwnFacts()), {}, {}, std::nullopt};
    process.seen.id = found.process;
    process.identity.TakeScan(found);
    watch_->Add(found.process);
    processes_.emplace(found.process, std::move(process));
  }
}

// What holds for every process of this agent, unless the process reports otherwise.
v1::Identity HostProcesses::OwnFacts() const {
  v1::Identity identity;
  identity.set_tenant(options_.tenant);
  identity.set_stacks_off(options_.stacks_off);
  if (options_.live) identity.set_booted_ns(SteadyNs() - BootNs());
  return identity;
}

void HostProcesses::MarkEnded(int64_t now_ns) {
  for (const ProcessEnd& end : watch_->Poll()) {
    const auto at = processes_.find(end.process);
    if (at == processes_.end()) continue;
    SeenProcess& process = at->second.seen;
    process.ended = true;
    process.ended_ns = now_ns;
    process.exit_code = end.exit_code;
    process.exit_signal = end.signal;
  }
  for (auto& [id, process] : processes_) {
    if (process.seen.ended) continue;
    if (!process.seen.visible) {
      const std::optional<bool> has_ended = process.segment.ShowsEnd();
      if (!has_ended.has_value()) continue;
      process.seen.ended = *has_ended;
    }
    (process.seen.ended ? process.seen.ended_ns : process.seen.alive_ns) = now_ns;
  }
}

// False if the file has not been deleted yet.
bool HostProcesses::Forget(ProcessId id) {
  const CollectedSegment& segment = processes_.at(id).segment;
  if (!folder_.Delete(segment.file(), segment.reader(), segment.claim(), own_namespace_)) {
    return false;
  }
  processes_.erase(id);
  faults_->Forget(id);
  return true;
}

std::vector<ProcessId> HostProcesses::ForgetEnded(int64_t now_ns) {
  std::vector<ProcessId> forgotten;
  if (!options_.live) return forgotten;
  for (auto at = processes_.begin(); options_.keep_ended_ns > 0 && at != processes_.end();) {
    const SeenProcess& process = (at++)->second.seen;
    const ProcessId id = process.id;
    const bool is_old = process.ended && now_ns - process.ended_ns > options_.keep_ended_ns;
    if (is_old && Forget(id)) forgotten.push_back(id);
  }
  ForgetBeyondLimit(&forgotten);
  return forgotten;
}

// Many short processes cost memory, and no caller asks for them any more. The daemon has them.
void HostProcesses::ForgetBeyondLimit(std::vector<ProcessId>* forgotten) {
  std::vector<const CollectedProcess*> ended;
  for (const auto& [id, process] : processes_) {
    if (process.seen.ended && process.updates.has_sent()) ended.push_back(&process);
  }
  if (ended.size() <= options_.most_ended) return;
  std::sort(ended.begin(), ended.end(), [](const CollectedProcess* a, const CollectedProcess* b) {
    return a->seen.ended_ns < b->seen.ended_ns;
  });
  Shares<ProcessId> shares;
  for (const CollectedProcess* process : ended) {
    shares.Put(process->seen.id, {std::to_string(process->identity.payer()), ""}, 1);
  }
  while (shares.total() > options_.most_ended) {
    const ProcessId oldest = *shares.Heaviest(Shares<ProcessId>::First::kOldest);
    if (!Forget(oldest)) return;
    shares.Remove(oldest);
    forgotten->push_back(oldest);
  }
  faults_->Add(absl::StrCat(
      "more than ", options_.most_ended,
      " processes have ended in the last hour: forgetting the oldest of the users with most of "
      "them"));
}

}  // namespace rollcall
