// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/collector.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/collector/process_facts.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/launch_facts.h"
#include "agent/processes/living_threads.h"
#include "agent/processes/payer.h"
#include "agent/processes/process_namespaces.h"
#include "agent/processes/this_host.h"
#include "agent/segments/shared_reader.h"
#include "base/durations.h"
#include "base/shares.h"

namespace rollcall {
namespace {

constexpr int64_t kDiscoverEvery = 2 * kSecond;
constexpr int64_t kScanHostEvery = kSecond;
constexpr int64_t kScanForNewEvery = kSecond / 5;
constexpr int64_t kFirstScanWait = kSecond;
constexpr int64_t kFileTimeout = kSecond / 20;
// A watch detects new files at once, except those of other hosts.
constexpr int64_t kListEvery = kSecond / 2;
// One key for all uses of the folder: an unresponsive file server blocks one thread at most.
constexpr char kDirectory[] = "directory";
// On an overloaded host any read may time out once.
constexpr int64_t kReportStuckAfter = 10 * kSecond;
// The library writes the magic of a new segment last.
constexpr int64_t kGiveUpAfter = 2 * kSecond;
// After that time the collector retries a segment that can still become complete at this interval.
constexpr int64_t kTryAgainEvery = 5 * kSecond;
constexpr int64_t kReadLaunchAgainAfter = kSecond;
constexpr int kMaxLaunchTries = 10;
constexpr size_t kShare = 3;           // of one user, times what is left
constexpr size_t kMostListed = 65536;  // names of segments in the folder
constexpr int64_t kLookForRoomEvery = 10 * kSecond;

std::vector<std::string> ListSegments(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    if (IsSegmentName(entry->d_name)) names.emplace_back(entry->d_name);
    if (names.size() == kMostListed) break;
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

struct Listing {
  std::unique_ptr<FolderWatch> watch;
  std::vector<std::string> names;
};

struct Opened {
  std::shared_ptr<SegmentReader> reader;  // nullptr: `claim` has the error
  absl::StatusOr<SegmentClaim> claim = absl::UnavailableError("not opened");
  int64_t payer = FaultLog::kNobody;  // of what is wrong with it
};

// Returns kUnavailable if the segment may become complete later. A stopped or starved process may
// take long to complete its segment, but holds the life lock from the beginning.
absl::Status OpenError(const std::string& path, const absl::Status& status) {
  const bool is_part = absl::IsFailedPrecondition(status) || absl::IsDataLoss(status);
  const bool is_made = is_part && QueryLockAt(path) == HeldLock::kHeld;
  return is_made ? absl::UnavailableError(status.message()) : status;
}

int64_t PayerOfFile(const std::string& path) {
  struct stat about;
  return lstat(path.c_str(), &about) == 0 ? PayerOfFiles(about.st_uid) : FaultLog::kNobody;
}

void OpenFile(const std::string& path, std::shared_ptr<SpareThreads> threads, Opened* opened) {
  opened->payer = PayerOfFile(path);
  auto reader = SegmentReader::Open(path);
  if (!reader.ok()) {
    opened->claim = OpenError(path, reader.status());
    return;
  }
  opened->reader = ShareReader(*std::move(reader), std::move(threads));
  opened->claim = opened->reader->Claim();
}

// The segment file of an ended process.
struct OldFile {
  std::string path;
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
};

// Whether no process can be using the file: the path still names this file, and every process that
// may have inherited its mapping has ended.
bool MayDelete(const OldFile& file, uint64_t own_namespace) {
  struct stat about;
  if (lstat(file.path.c_str(), &about) != 0 || !file.reader->IsFile(about.st_dev, about.st_ino)) {
    return false;
  }
  if (file.claim.life_lock) return file.reader->Lock() == HeldLock::kFree;
  return own_namespace != 0 && file.claim.pid_namespace == own_namespace;
}

PidLookup LookUpPid(const std::string& proc_root, pid_t pid) {
  PidLookup found;
  const auto stat = ReadProcStat(proc_root, pid);
  if (stat.ok()) found.start_time = stat->start_time;
  // A missing entry alone is no proof: /proc may hide the processes of other users (hidepid).
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

// The memory that the contents of a segment take.
size_t BytesOf(const SegmentSnapshot& snapshot) {
  size_t bytes = sizeof(snapshot);
  for (const std::string& site : snapshot.sites) bytes += sizeof(site) + site.size();
  for (const CommSnapshot& comm : snapshot.communicators) {
    bytes += sizeof(comm) + comm.records.size() * sizeof(RecordSnapshot) +
             comm.checkpoints.size() * sizeof(comm.checkpoints[0]) +
             comm.graph_launches.size() * sizeof(GraphLaunchSnapshot) +
             comm.messages.size() * sizeof(MessagesSnapshot);
  }
  return bytes;
}

std::string ProcessKey(pid_t pid) { return absl::StrCat("process ", pid); }
std::string FileKey(const std::string& name) { return absl::StrCat("file ", name); }

ScanOptions ScanOptionsFrom(const CollectorOptions& options) {
  ScanOptions scan;
  scan.proc_root = options.proc_root;
  scan.uid = geteuid();
  scan.whole_host = options.whole_host;
  scan.discover_directory = options.discover_directory;
  scan.find_unrecorded = options.whole_host && options.find_unrecorded;
  return scan;
}

}  // namespace

Collector::Collector(CollectorOptions options) : options_(std::move(options)) {
  if (!options_.live) return;
  threads_ = std::make_shared<SpareThreads>(options_.least_read_wait_ns);
  watch_ = std::make_unique<ProcessWatch>(options_.proc_root, threads_);
  scan_ = std::make_unique<HostScan>(ScanOptionsFrom(options_), threads_);
  clock_ = std::make_unique<HostClock>();
  own_namespace_ = ReadProcPidNamespace(options_.proc_root);
}

Collector::~Collector() {
  if (threads_ == nullptr) return;
  // Destroy the readers before Cancel(): closing a file needs a spare thread.
  ForgetReported();
  new_files_.clear();
  processes_.clear();
  threads_->Cancel();
}

std::vector<std::string> Collector::TakeWarnings() { return faults_.Take(); }

bool Collector::Serves(ProcessId process) const {
  const MutexLock lock(served_mutex_);
  return served_.count(process) != 0;
}

bool Collector::ServesPid(pid_t pid) const {
  const MutexLock lock(served_mutex_);
  const auto at = served_.lower_bound({pid, 0});
  return at != served_.end() && at->first.pid == pid;
}

std::vector<pid_t> Collector::ServedPids() const {
  const MutexLock lock(served_mutex_);
  std::vector<pid_t> pids;
  for (const auto& [process, segment] : served_) pids.push_back(process.pid);
  return pids;
}

ServedSegment Collector::SegmentOf(ProcessId process) const {
  const MutexLock lock(served_mutex_);
  const auto at = served_.find(process);
  return at == served_.end() ? ServedSegment() : at->second;
}

void Collector::ForgetReported() {
  const MutexLock lock(served_mutex_);
  served_.clear();
}

v1::Tick Collector::Collect(int64_t now_ns, bool whole) {
  v1::Tick tick;
  Collect(now_ns, whole, &tick);
  return tick;
}

void Collector::Collect(int64_t now_ns, bool whole, v1::Tick* tick) {
  if (options_.live) clock_->Sample();
  ListDirectory(now_ns);
  if (options_.live) {
    ScanHost(now_ns);
    MarkEnded(now_ns);
  }
  whole = ChooseProcesses() || whole;
  tick->set_now_ns(now_ns);
  tick->set_whole(whole);
  tick->set_left_out_segments(CountLeftOut());
  ShareRecords();
  // A large tick goes out in pieces: the daemon has to have the end of a rank before its next
  // start.
  for (const bool ended : {true, false}) {
    for (auto& [id, process] : processes_) {
      if (process->ended != ended || process->turn == uint64_t{0}) continue;
      const bool changed = CollectProcess(now_ns, whole, process.get(), tick->add_processes());
      if (!changed) tick->mutable_processes()->RemoveLast();
    }
  }
  if (options_.live && options_.keep_ended_ns > 0) RemoveEndedProcesses(now_ns);
  if (options_.live) ForgetEndedBeyondShare();
}

// Whether a process has come that was another stream's, has gone there, or both.
bool Collector::ChooseProcesses() {
  if (!options_.takes) return false;
  bool has_changed = false;
  for (auto& [id, process] : processes_) {
    const uint64_t turn = options_.takes(process->identity.tenant(), process->identity.job());
    has_changed = has_changed || process->turn.value_or(turn) != turn;
    process->turn = turn;
    if (turn != 0) continue;
    const MutexLock lock(served_mutex_);
    served_.erase(id);
  }
  return has_changed;
}

bool Collector::IsBehind() const {
  if (!new_files_.empty() || directory_stuck_since_ns_ != 0) return true;
  for (const auto& [name, tried] : unreadable_) {
    if (tried.again_ns != INT64_MAX && !tried.is_left_out) return true;
  }
  return std::any_of(segments_.begin(), segments_.end(), [this](const auto& segment) {
    return threads_->IsRunning(FileKey(segment.first));
  });
}

bool Collector::MustListDirectory(int64_t now_ns) {
  if (folder_watch_ == nullptr) return true;
  const FolderWatch::News news = folder_watch_->Take();
  if (news == FolderWatch::News::kGone) folder_watch_ = nullptr;
  const bool retries =
      std::any_of(unreadable_.begin(), unreadable_.end(),
                  [now_ns](const auto& entry) { return entry.second.again_ns <= now_ns; });
  return news != FolderWatch::News::kNone || retries || now_ns - listed_ns_ >= kListEvery;
}

// `names`: of the files that are there, sorted.
void Collector::ForgetRemovedFiles(const std::vector<std::string>& names) {
  for (auto at = unreadable_.begin(); at != unreadable_.end();) {
    const bool is_there = std::binary_search(names.begin(), names.end(), at->first);
    at = is_there ? std::next(at) : unreadable_.erase(at);
  }
}

void Collector::ListDirectory(int64_t now_ns) {
  if (!MustListDirectory(now_ns)) return;
  auto listing = std::make_shared<Listing>();
  const auto list = [directory = options_.directory, host = options_.whole_host,
                     watch = options_.live && folder_watch_ == nullptr, listing] {
    if (watch) listing->watch = FolderWatch::Open(directory);  // before the list
    if (!host || !ServedByRun(directory)) listing->names = ListSegments(directory);
  };
  if (!options_.live) {
    list();
  } else if (!threads_->Run(kDirectory, list, kFileTimeout)) {
    if (directory_stuck_since_ns_ == 0) directory_stuck_since_ns_ = now_ns;
    if (now_ns - directory_stuck_since_ns_ > kReportStuckAfter) {
      faults_.Add(absl::StrCat(options_.directory,
                               ": the file system does not answer; left out until it does"));
    }
    return;
  }
  directory_stuck_since_ns_ = 0;
  listed_ns_ = now_ns;
  if (listing->watch != nullptr) folder_watch_ = std::move(listing->watch);
  ForgetRemovedFiles(listing->names);
  for (const std::string& name : listing->names) {
    if (IsNew(name, now_ns)) OpenSegment(name, now_ns);
  }
}

bool Collector::IsNew(const std::string& name, int64_t now_ns) const {
  if (new_files_.count(name) != 0) return false;
  const auto known = segments_.find(name);
  if (known == segments_.end()) {
    const auto tried = unreadable_.find(name);
    return tried == unreadable_.end() || now_ns >= tried->second.again_ns;
  }
  // After exec(), the new program of the process creates a new file with the same name.
  const auto process = processes_.find(known->second);
  return process != processes_.end() && process->second->reader != nullptr &&
         IsDeleted(name, process->second->reader);
}

bool Collector::IsDeleted(const std::string& name,
                          const std::shared_ptr<SegmentReader>& reader) const {
  if (!options_.live || !reader->MayBlock()) return reader->Deleted();
  return threads_->Get<bool>(
                     FileKey(name), [reader] { return reader->Deleted(); }, kFileTimeout)
      .value_or(false);
}

void Collector::RetryOrGiveUp(const std::string& name, int64_t now_ns, const absl::Status& why,
                              int64_t payer) {
  OpenAttempt& tried = unreadable_.emplace(name, OpenAttempt{now_ns, now_ns}).first->second;
  if (options_.live && now_ns - tried.first_ns < kGiveUpAfter) return;
  if (options_.live && absl::IsUnavailable(why)) {
    tried.again_ns = now_ns + kTryAgainEvery;
    return;
  }
  tried.again_ns = INT64_MAX;
  faults_.Add(absl::StrCat("skipped: ", why.message()), payer);
}

// One user has three times what is left for the others, at most. nullopt: it is not known yet whose
// the segment is.
bool Collector::HasRoomFor(ProcessId id, size_t bytes, std::optional<int64_t> payer) const {
  const bool is_shared = options_.live && options_.whole_host && payer.has_value();
  size_t segments = new_files_.size(), own_segments = 0, all_bytes = 0, own_bytes = bytes;
  for (const auto& [other, process] : processes_) {
    if (process->reader == nullptr || other == id) continue;
    const bool is_own = PayerOf(*process) == payer;
    ++segments;
    all_bytes += process->segment_bytes;
    own_segments += is_own ? 1 : 0;
    own_bytes += is_own ? process->segment_bytes : 0;
  }
  if (segments >= options_.most_segments || all_bytes + bytes > options_.most_segment_bytes) {
    return false;
  }
  if (!is_shared || own_segments == 0) return true;
  return own_segments < kShare * (options_.most_segments - segments) &&
         own_bytes <= kShare * (options_.most_segment_bytes - all_bytes);
}

void Collector::LeaveOut(const std::string& name, int64_t now_ns) {
  unreadable_[name] = {now_ns, now_ns + kLookForRoomEvery, true};
  faults_.Add(absl::StrCat(options_.directory, ": more than ", options_.most_segments,
                           " segments, or more than ", options_.most_segment_bytes >> 20,
                           " MiB in them: the others are left out\n"
                           "  remove those of ended jobs, or give jobs folders of their own "
                           "(ROLLCALL_DIR)"));
}

size_t Collector::CountLeftOut() const {
  return host_left_out_.size() + static_cast<size_t>(std::count_if(
                                     unreadable_.begin(), unreadable_.end(),
                                     [](const auto& entry) { return entry.second.is_left_out; }));
}

void Collector::OpenSegment(const std::string& name, int64_t now_ns) {
  if (!HasRoomFor(ProcessId(), 0, std::nullopt)) return LeaveOut(name, now_ns);
  auto opened = std::make_shared<Opened>();
  const auto open = [path = absl::StrCat(options_.directory, "/", name), threads = threads_,
                     opened] { OpenFile(path, threads, opened.get()); };
  if (!options_.live) {
    open();
  } else if (!threads_->Run(FileKey(name), open, kFileTimeout)) {
    return;
  }
  if (!opened->claim.ok()) {
    return RetryOrGiveUp(name, now_ns, opened->claim.status(), opened->payer);
  }
  NewSegment file;
  file.reader = std::move(opened->reader);
  file.claim = *opened->claim;
  if (!options_.live) {
    const SegmentOwner owner = {SegmentOwner::kVisible, {file.claim.pid, file.claim.start_time}};
    AddSegment(owner, file.claim, file.reader, name, now_ns);
    return;
  }
  if (!file.claim.of_this_boot) {
    unreadable_[name].again_ns = INT64_MAX;
    faults_.Add(absl::StrCat(file.reader->path(), ": from another host or an earlier boot: ",
                             "left out; rollcall analyze reads it"),
                opened->payer);
    return;
  }
  file.settled_by = scan_->begun() + 1;
  new_files_[name] = std::move(file);
  SettleNewFiles(now_ns);
}

SegmentOwner Collector::FindSegmentOwner(const NewSegment& file, const SegmentClaim& claim) const {
  const std::optional<PidLookup> read = threads_->Get<PidLookup>(
      ProcessKey(claim.pid),
      [proc_root = options_.proc_root, pid = claim.pid] { return LookUpPid(proc_root, pid); },
      kFileTimeout, PayerOfReads(options_.proc_root, claim.pid));
  if (!read.has_value()) return {};  // the next tick reads again
  const PidLookup& pid_lookup = *read;
  const std::shared_ptr<const ScanResult> scan = scan_->newest();
  if (scan == nullptr || scan->number < file.settled_by) {
    return FindOwner(claim, nullptr, pid_lookup, own_namespace_);
  }
  const std::vector<SegmentMapper> mappers =
      scan->FindMappers(file.reader->device(), file.reader->inode());
  return FindOwner(claim, &mappers, pid_lookup, own_namespace_);
}

void Collector::SettleNewFiles(int64_t now_ns) {
  for (auto at = new_files_.begin(); at != new_files_.end();) {
    const std::string name = at->first;
    NewSegment& file = at->second;
    if (!file.reader->MayBlock()) file.claim = file.reader->Claim().value_or(file.claim);
    const SegmentOwner owner = FindSegmentOwner(file, file.claim);
    if (owner.kind == SegmentOwner::kLater) {
      ++at;
      continue;
    }
    const NewSegment settled = std::move(file);
    at = new_files_.erase(at);
    AddSegment(owner, settled.claim, settled.reader, name, now_ns);
  }
}

// When a process of `rollcall run` has loaded the library last: the library sets this file's time.
// A rank may end before the next usual scan. 0: never.
int64_t Collector::ReadLoadedTime() const {
  if (options_.discover_directory.empty()) return 0;
  const auto read = [file = options_.discover_directory + "/loaded"]() -> int64_t {
    struct stat about;
    if (stat(file.c_str(), &about) != 0) return 0;
    return int64_t{about.st_mtim.tv_sec} * kSecond + about.st_mtim.tv_nsec;
  };
  return threads_->Get<int64_t>(kDirectory, read, kFileTimeout).value_or(scanned_loaded_ns_);
}

void Collector::ScanHost(int64_t now_ns) {
  const bool urgent = !new_files_.empty();
  const int64_t loaded_ns = ReadLoadedTime();
  const int64_t usual_ns = options_.whole_host ? kScanHostEvery : kDiscoverEvery;
  const int64_t calm_ns = loaded_ns == scanned_loaded_ns_ ? usual_ns : kScanForNewEvery;
  const uint64_t begun = scan_->begun();
  const int64_t wait_ns =
      scan_->begun() == 0 ? std::max(kFirstScanWait, options_.scan_wait_ns) : options_.scan_wait_ns;
  const MapsToRead calm_maps = options_.whole_host ? MapsToRead::kChanged : MapsToRead::kNone;
  scan_->Poll(now_ns, urgent ? 0 : calm_ns, urgent ? MapsToRead::kAll : calm_maps, wait_ns);
  if (scan_->begun() != begun) scanned_loaded_ns_ = loaded_ns;
  const std::shared_ptr<const ScanResult> scan = scan_->newest();
  SettleNewFiles(now_ns);
  if (scan == nullptr || scan->number == used_scan_) return;
  used_scan_ = scan->number;
  for (const ScanFault& fault : scan->faults) faults_.Add(fault.text, fault.user);
  if (options_.whole_host) AddHostSegments(*scan, now_ns);
  AddProcessesWithoutSegment(*scan);
}

v1::UnrecordedProcesses Collector::ListUnrecorded() const {
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

void Collector::AddHostSegments(const ScanResult& scan, int64_t now_ns) {
  std::map<ProcessId, int64_t> left_out;
  for (const MappedSegment& segment : scan.segments) {
    if (segment.reader == nullptr) continue;
    const ProcessId id = segment.mapper.process;
    const auto known = processes_.find(id);
    const bool has_it =
        known != processes_.end() && known->second->reader != nullptr &&
        known->second->reader->IsFile(segment.reader->device(), segment.reader->inode());
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
    } else if (!AddSegment(owner, segment.claim, segment.reader, "", now_ns)) {
      left_out[id] = now_ns + kLookForRoomEvery;
    }
  }
  host_left_out_ = std::move(left_out);
}

// Reads again later if the read fails: on an overloaded host any read may time out, and a process
// that starts a new program hides its environment for a moment.
void Collector::ReadLaunch(int64_t now_ns, CollectedProcess* process) const {
  const pid_t pid = process->id.pid;
  const int64_t payer = PayerOfReads(options_.proc_root, pid);
  if (payer != SpareThreads::kNobody) process->payer = payer;
  const auto read = [proc_root = options_.proc_root, pid] {
    return ReadLaunchFacts(proc_root, pid, HostName());
  };
  // The driver's files may be slow, so this read has a key of its own.
  const auto facts = threads_
                         ->Get<std::optional<LaunchFacts>>(absl::StrCat("launch of ", pid), read,
                                                           kFileTimeout, payer)
                         .value_or(std::nullopt);
  process->identity.set_started_ns(BeganAtSteadyNs(process->id.start_time));
  if (facts.has_value()) {
    SetLaunch(*facts, &process->identity);
    process->identity_sent = false;
  }
  const bool again = !facts.has_value() && ++process->launch_tries < kMaxLaunchTries;
  process->launch_again_ns = again ? now_ns + kReadLaunchAgainAfter : 0;
}

// False: there is no room for it.
bool Collector::AddSegment(const SegmentOwner& owner, const SegmentClaim& claim,
                           std::shared_ptr<SegmentReader> reader, const std::string& file,
                           int64_t now_ns) {
  const ProcessId id = owner.process;
  const bool visible = owner.kind == SegmentOwner::kVisible;
  const auto known = processes_.find(id);
  if (known != processes_.end() && !file.empty()) {
    CollectedProcess& process = *known->second;
    const bool same =
        process.reader != nullptr && process.reader->IsFile(reader->device(), reader->inode());
    if (same) process.file = file;
    // The process was reported without a segment and ended before its segment was found.
    const bool is_first = process.reader == nullptr && owner.kind == SegmentOwner::kEnded &&
                          claim.pid_namespace == own_namespace_;
    if (same || (!visible && !is_first)) {
      // Not visible: two pid namespaces have a process with this pid and start time.
      if (process.reader != nullptr) segments_[file] = id;
      return true;
    }
  }
  auto process = std::make_unique<CollectedProcess>();
  process->id = id;
  process->file = file;
  process->reader = std::move(reader);
  process->claim = claim;
  process->visible = visible;
  SetOwnFacts(&process->identity);
  // Its environment may be unreadable by now.
  if (known != processes_.end()) {
    process->identity = known->second->identity;
    process->turn = known->second->turn;
    process->payer = known->second->payer;
  }
  if (options_.live && visible) {
    const OwnView view = threads_
                             ->Get<OwnView>(
                                 ProcessKey(id.pid),
                                 [proc_root = options_.proc_root, pid = id.pid] {
                                   return ReadOwnView(proc_root, pid);
                                 },
                                 kFileTimeout)
                             .value_or(OwnView());
    process->other_numbers = view.own_pid != id.pid;
    process->ahead_ns = view.ahead_ns.value_or(0);
    if (!view.ahead_ns.has_value()) process->wait_floor_ns = now_ns;
    ReadLaunch(now_ns, process.get());
  } else if (options_.live) {
    process->wait_floor_ns = now_ns;
  }
  // The kernel says no longer whose a process was that has ended. Its file does.
  if (options_.live && !process->identity.has_uid()) {
    process->identity.set_uid(process->reader->user());
  }
  const absl::StatusOr<SegmentSnapshot> snapshot = ReadFile(process.get());
  if (!snapshot.ok()) {
    if (!file.empty()) RetryOrGiveUp(file, now_ns, snapshot.status(), PayerOf(*process));
    return true;
  }
  process->segment_bytes = BytesOf(*snapshot);
  const int64_t payer = PayerOf(*process);
  const auto known_payer =
      payer == SpareThreads::kNobody ? std::nullopt : std::optional<int64_t>(payer);
  if (!HasRoomFor(id, process->segment_bytes, known_payer)) {
    if (!file.empty()) LeaveOut(file, now_ns);
    return false;
  }
  process->reader->StartOver();
  SetIdentity(*snapshot, process.get());
  if (owner.kind == SegmentOwner::kEnded) {
    process->ended = true;
    process->ended_ns = now_ns;
  }
  if (known != processes_.end() && known->second->ended) {  // keep its exit status
    process->ended = true;
    process->ended_ns = known->second->ended_ns;
    process->alive_ns = known->second->alive_ns;
    process->exit_code = known->second->exit_code;
    process->exit_signal = known->second->exit_signal;
  }
  if (!file.empty()) {
    segments_[file] = id;
    unreadable_.erase(file);
  }
  if (watch_ != nullptr && visible) watch_->Add(id);
  processes_[id] = std::move(process);
  return true;
}

void Collector::AddProcessesWithoutSegment(const ScanResult& scan) {
  for (const DiscoveredProcess& found : scan.launched) {
    if (!found.is_main || found.rank.coordinates.rank < 0 || processes_.count(found.process) != 0)
      continue;
    auto process = std::make_unique<CollectedProcess>();
    process->id = found.process;
    process->identity.set_job(Printable(found.job.c_str(), found.job.size()));
    process->identity.set_global_rank(found.rank.coordinates.rank);
    process->identity.set_world_size(found.rank.coordinates.world_size);
    process->identity.set_local_rank(found.rank.coordinates.local_rank);
    process->identity.set_command(Printable(found.name.c_str(), found.name.size()));
    process->identity.set_started_ns(BeganAtSteadyNs(found.process.start_time));
    SetOwnFacts(&process->identity);
    SetLaunch(found.launch, &process->identity);
    watch_->Add(found.process);
    processes_[found.process] = std::move(process);
  }
}

void Collector::MarkEnded(int64_t now_ns) {
  for (const ProcessEnd& end : watch_->Poll()) {
    const auto at = processes_.find(end.process);
    if (at == processes_.end()) continue;
    at->second->ended = true;
    at->second->ended_ns = now_ns;
    at->second->exit_code = end.exit_code;
    at->second->exit_signal = end.signal;
  }
  for (auto& [id, process] : processes_) {
    if (process->ended) continue;
    if (!process->visible) {
      if (process->reader->MayBlock()) continue;
      process->claim.lock = process->reader->Lock();
      process->ended = LifeLockShowsEnd(process->claim);
    }
    (process->ended ? process->ended_ns : process->alive_ns) = now_ns;
  }
}

// False: the deletion has not finished yet.
bool Collector::DeleteFile(const CollectedProcess& process) {
  if (process.file.empty()) return true;
  const OldFile file = {absl::StrCat(options_.directory, "/", process.file), process.reader,
                        process.claim};
  const auto deleted = threads_->Get<bool>(
      kDirectory,
      [file, own_namespace = own_namespace_] {
        return MayDelete(file, own_namespace) && unlink(file.path.c_str()) == 0;
      },
      kFileTimeout);
  if (deleted.value_or(false)) segments_.erase(process.file);
  return deleted.has_value();
}

void Collector::RemoveEndedProcesses(int64_t now_ns) {
  for (auto at = processes_.begin(); at != processes_.end();) {
    const CollectedProcess& process = *at->second;
    const bool is_old = process.ended && now_ns - process.ended_ns > options_.keep_ended_ns;
    if (!is_old || !DeleteFile(process)) {
      ++at;
      continue;
    }
    const ProcessId id = (at++)->first;
    Forget(id);
  }
}

void Collector::Forget(ProcessId id) {
  {
    const MutexLock lock(served_mutex_);
    served_.erase(id);
  }
  processes_.erase(id);
  faults_.Forget(id);
}

// Many short processes cost memory, and nobody asks for them any more. The daemon has them.
void Collector::ForgetEndedBeyondShare() {
  std::vector<const CollectedProcess*> ended;
  for (const auto& [id, process] : processes_) {
    if (process->ended && !process->evidence_sent.empty()) ended.push_back(process.get());
  }
  if (ended.size() <= options_.most_ended) return;
  std::sort(ended.begin(), ended.end(), [](const CollectedProcess* a, const CollectedProcess* b) {
    return a->ended_ns < b->ended_ns;
  });
  Shares<ProcessId> shares;
  for (const CollectedProcess* process : ended) {
    shares.Put(process->id, {std::to_string(PayerOf(*process)), ""}, 1);
  }
  while (shares.total() > options_.most_ended) {
    const ProcessId oldest = *shares.Heaviest(Shares<ProcessId>::First::kOldest);
    if (!DeleteFile(*processes_.at(oldest))) return;
    shares.Remove(oldest);
    Forget(oldest);
  }
  faults_.Add(absl::StrCat(
      "more than ", options_.most_ended,
      " processes have ended in the last hour: forgetting the oldest of the users with most of "
      "them"));
}

}  // namespace rollcall
