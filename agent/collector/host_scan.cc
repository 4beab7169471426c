// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/host_scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/collector/mesh_search.h"
#include "agent/collector/peers.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/payer.h"
#include "agent/processes/pod_environment.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_lines.h"
#include "agent/processes/proc_maps.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_namespaces.h"
#include "agent/processes/this_host.h"
#include "agent/segments/printable.h"
#include "agent/segments/shared_reader.h"
#include "base/base_name.h"
#include "base/monotonic_clock.h"
#include "base/mutex.h"
#include "base/open_regular.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr char kScan[] = "scan";
constexpr int kReportStuckAfterScans = 3;
constexpr size_t kStatsTogether = 64;
// Scans between two reads of an old process.
constexpr uint64_t kRescanAfter = 10;

std::string ParentFolder(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The result of reading one process. A spare thread fills it and may block forever.
struct ProcessView {
  std::optional<DiscoveredProcess> launched;
  std::shared_ptr<const UnrecordedRank> unrecorded;  // nullptr if it is not one
  // What may be a rank by its connections, or nullptr; and what it has mapped.
  std::shared_ptr<const UnrecordedRank> talker;
  std::vector<std::string> libraries;  // by which ranks talk, each once
  bool preloaded = false;
  std::optional<ProcMap> segment;
  pid_t own_pid = 0;
  uint64_t pid_namespace = 0;
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  std::string run_folder;  // of the `rollcall run` that serves it, or empty
  std::string error;       // the reason why the segment could not be opened
  bool too_late = false;   // its maps take longer to read than anybody waits
};

// Opens the mapped file: by its path in the process's own root, by the mapping itself (map_files,
// which needs CAP_CHECKPOINT_RESTORE), or by the same path in the agent's root (for a process in a
// chroot).
UniqueFd OpenMapped(const std::string& proc_root, pid_t pid, const ProcMap& map) {
  const auto open_if_same = [&map](const std::string& path, int no_link) {
    const UniqueFd there(open(path.c_str(), O_PATH | O_CLOEXEC | no_link));
    return there.valid() && IsMapped(there.get(), map) ? ReopenRegular(there, O_RDONLY)
                                                       : UniqueFd();
  };
  UniqueFd fd = open_if_same(absl::StrCat(ProcPath(proc_root, pid, "root"), map.path), O_NOFOLLOW);
  const int error = errno;
  if (fd.valid()) return fd;
  const std::string mapping = absl::StrFormat("map_files/%x-%x", map.start, map.end);
  fd = open_if_same(ProcPath(proc_root, pid, mapping), 0);  // a link of the kernel
  if (fd.valid()) return fd;
  fd = open_if_same(map.path, O_NOFOLLOW);
  errno = error;
  return fd;
}

void OpenSegment(const std::string& proc_root, pid_t pid,
                 const std::shared_ptr<SpareThreads>& threads, ProcessView* view) {
  const ProcMap& map = *view->segment;
  UniqueFd fd = OpenMapped(proc_root, pid, map);
  if (!fd.valid()) {
    view->error =
        absl::StrCat("process ", pid, ": its segment ", map.path,
                     " cannot be opened: ", map.deleted ? "it was deleted" : strerror(errno));
    return;
  }
  auto reader = SegmentReader::FromDescriptor(map.path, std::move(fd));
  absl::StatusOr<SegmentClaim> claim =
      reader.ok() ? (*reader)->file().Claim() : absl::StatusOr<SegmentClaim>(reader.status());
  if (!claim.ok()) {
    view->error = absl::StrCat("process ", pid, ": skipped: ", claim.status().message());
    return;
  }
  view->reader = ShareReader(*std::move(reader), threads);
  view->claim = *claim;
}

// Sets `run_folder` if a `rollcall run` serves the process. The agent of the host then skips it.
void FindRunFolder(const ScanOptions& options, pid_t pid, const std::string& folder,
                   ProcessView* view) {
  if (!options.whole_host || folder.empty()) return;
  const std::string path = absl::StrCat(ProcPath(options.proc_root, pid, "root"), folder);
  if (ServedByRun(path)) view->run_folder = path;
}

void AddLibrary(absl::string_view line, std::vector<std::string>* libraries) {
  const absl::string_view library = LibraryOf(line);
  if (library.empty()) return;
  if (std::find(libraries->begin(), libraries->end(), library) == libraries->end())
    libraries->emplace_back(library);
}

void LookAtMap(absl::string_view line, ProcessView* view) {
  const bool may_matter =
      absl::StrContains(line, "librollcall.so") || absl::StrContains(line, ".seg");
  ProcMap map;
  if (!may_matter || !ParseProcMap(line, &map)) return;
  const absl::string_view name = BaseName(map.path);
  if (name == "librollcall.so") view->preloaded = true;
  if (map.offset == 0 && map.inode != 0 && IsSegmentName(std::string(name))) {
    view->segment = std::move(map);
  }
}

// Of a process whose environment gives it no rank.
void DescribeIfTalker(const ScanOptions& options, const ProcStat& stat, ProcessView* view) {
  const bool is_known = view->launched.has_value() || view->unrecorded != nullptr;
  if (is_known || view->preloaded || !MayTalkByTcp(view->libraries)) {
    view->talker = nullptr;
  } else if (view->talker == nullptr) {
    const auto environ =
        ReadProcFile(ProcPath(options.proc_root, stat.pid, "environ"), kMaxEnvironBytes);
    if (!environ.ok()) return;
    auto rank = DescribeTalker(WithPodVariables(*environ, options.proc_root, stat.pid), stat,
                               options.proc_root);
    if (rank.has_value()) view->talker = std::make_shared<UnrecordedRank>(*std::move(rank));
  }
}

void ReadMaps(const ScanOptions& options, const ProcStat& stat,
              const std::shared_ptr<SpareThreads>& threads, ProcessView* view) {
  const pid_t pid = stat.pid;
  const std::string path = ProcPath(options.proc_root, pid, "maps");
  // Ends while somebody waits for the answer, so that it is known why there is none.
  const int64_t deadline_ns = MonotonicNs() + options.read_timeout_ns / 3 * 2;
  view->libraries.clear();
  const auto look_at = [view, finds = options.find_unrecorded](absl::string_view line) {
    LookAtMap(line, view);
    if (finds) AddLibrary(line, &view->libraries);
  };
  const bool whole = ForEachProcLine(path, deadline_ns, look_at);
  view->too_late = !whole && MonotonicNs() > deadline_ns;
  if (!whole) return;
  view->error.clear();
  if (options.find_unrecorded) DescribeIfTalker(options, stat, view);
  if (!view->segment.has_value()) return;
  view->own_pid = ReadOwnPid(options.proc_root, pid);
  view->pid_namespace = ReadPidNamespace(options.proc_root, pid);
  if (!options.whole_host) return;
  FindRunFolder(options, pid, ParentFolder(view->segment->path), view);
  if (view->run_folder.empty()) OpenSegment(options.proc_root, pid, threads, view);
}

void ReadEnviron(const ScanOptions& options, const ProcStat& stat, ProcessView* view) {
  const auto environ =
      ReadProcFile(ProcPath(options.proc_root, stat.pid, "environ"), kMaxEnvironBytes);
  if (!environ.ok()) return;
  const std::string block = WithPodVariables(*environ, options.proc_root, stat.pid);
  view->launched = DiscoverIn(block, stat, options.discover_directory);
  if (!view->launched.has_value()) {
    if (!options.find_unrecorded) return;
    auto rank = DescribeUnrecorded(block, stat, options.proc_root);
    if (rank.has_value()) view->unrecorded = std::make_shared<UnrecordedRank>(*std::move(rank));
    return;
  }
  view->preloaded = true;
  if (view->launched->rank.coordinates.rank >= 0) {
    view->launched->launch =
        ReadLaunchFacts(options.proc_root, stat.pid, HostName()).value_or(LaunchFacts());
  }
  FindRunFolder(options, stat.pid, view->launched->directory, view);
}

// The stat fields of many processes. A spare thread fills `stats` in order and may block forever.
struct Stats {
  explicit Stats(std::vector<pid_t> wanted) : pids(std::move(wanted)), stats(pids.size()) {}

  const std::vector<pid_t> pids;
  std::vector<std::optional<ProcStat>> stats;  // valid below index `done`
  std::atomic<size_t> done{0};
  std::atomic<bool> abandoned{false};
  std::atomic<bool> returned{false};  // the spare thread has finished
};

void ReadStats(const std::string& proc_root, Stats* stats) {
  for (size_t i = 0; i < stats->pids.size() && !stats->abandoned; ++i) {
    auto stat = ReadProcStat(proc_root, stats->pids[i]);
    if (stats->abandoned) break;
    if (stat.ok()) stats->stats[i] = *std::move(stat);
    stats->done = i + 1;
  }
  stats->returned = true;
}

}  // namespace

std::vector<SegmentMapper> ScanResult::FindMappers(uint64_t device, uint64_t inode) const {
  std::vector<SegmentMapper> mappers;
  for (const MappedSegment& segment : segments) {
    const bool same_file = segment.reader != nullptr ? segment.reader->file().Is(device, inode)
                                                     : segment.inode == inode;
    if (same_file) mappers.push_back(segment.mapper);
  }
  return mappers;
}

// Runs the scans, one at a time, and keeps the result of each process between them. A scan
// publishes its result when it is complete.
class HostScan::Scanner {
 public:
  Scanner(ScanOptions options, std::shared_ptr<SpareThreads> threads)
      : options_(std::move(options)),
        threads_(std::move(threads)),
        meshes_(options_.proc_root, options_.read_timeout_ns, threads_) {}

  void Scan(uint64_t number, MapsToRead maps);

  std::shared_ptr<const ScanResult> newest() const {
    const MutexLock lock(mutex_);
    return newest_;
  }

 private:
  struct KnownProcess {
    ProcStat stat;
    uint64_t inode = 0;     // of its folder in /proc
    uint64_t first_in = 0;  // number of the first scan that found it
    bool served = false;    // may be a process of a job
    bool was_read = false;  // the view is of this program
    bool with_maps = false;
    uint64_t maps_bytes = 0;  // its virtual memory at the last read of its maps
    bool stuck = false;
    bool too_late = false;  // stuck because its maps are long, so reading them again soon is no use
    int64_t payer = SpareThreads::kNobody;
    bool without_facts = false;  // they are not kept, because its user had too many
    bool rank_dropped = false;   // its rank is not kept, because its user had too many
    bool failed_before = false;  // the last scan could not open its segment
    ProcessView view;
  };

  bool MayBeOfJob(const KnownProcess& known) const;
  bool IsTurn(pid_t pid) const;
  bool MustReadStat(const KnownProcess& known) const;
  std::vector<ProcStat> ReadStatsInTime(std::vector<pid_t> pids);
  void DropUsersWithManyStuck(std::vector<pid_t>* pids) const;
  void ReportStuck(pid_t pid, const std::string& name, int64_t user);
  bool IsServed(const ProcStat& stat) const;
  bool MustRead(const ProcStat& stat, const KnownProcess& known) const;
  bool MustReadMaps(const ProcStat& stat, const KnownProcess& known) const;
  bool HasShare(const ProcStat& stat, KnownProcess* known) const;
  bool IsLeftOut(KnownProcess* known);
  void ReportLaunched(KnownProcess* known);
  static bool IsRecorded(const ProcessView& view) {
    return view.launched.has_value() || view.preloaded || view.segment.has_value() ||
           !view.run_folder.empty();
  }
  std::vector<UnrecordedRank> FindUnrecorded();
  std::set<pid_t> FindRecorded() const;
  std::vector<pid_t> AncestorsOf(pid_t pid) const;
  bool IsRelatedToRecorded(pid_t pid, const std::set<pid_t>& recorded) const;
  void KeepRank(UnrecordedRank rank, pid_t launcher);
  void KeepUnrecorded();
  void KeepTalkers();
  void WarnOfManyLaunched();
  void Read(const ProcStat& stat, KnownProcess* known);
  void Report(KnownProcess* known);

  const ScanOptions options_;
  const std::shared_ptr<SpareThreads> threads_;
  MeshSearch meshes_;
  std::map<pid_t, KnownProcess> known_;
  std::map<pid_t, std::shared_ptr<Stats>> stuck_;  // reads of stat that are still blocked
  std::map<pid_t, int> scans_stuck_;               // consecutive scans
  std::shared_ptr<ScanResult> result_;             // of the running scan
  MapsToRead maps_ = MapsToRead::kNone;            // likewise
  std::map<int64_t, int64_t> spent_ns_;            // likewise, on reads, by payer
  std::map<int64_t, size_t> launched_;             // likewise, processes without a segment

  mutable Mutex mutex_;
  std::shared_ptr<const ScanResult> newest_ ABSL_GUARDED_BY(mutex_);
};

bool HostScan::Scanner::IsServed(const ProcStat& stat) const {
  if (stat.is_kernel_thread || stat.state == 'Z' || stat.state == 'X') return false;
  if (options_.whole_host) return true;
  struct stat directory;
  const std::string path = absl::StrCat(options_.proc_root, "/", stat.pid);
  return ::stat(path.c_str(), &directory) == 0 && directory.st_uid == options_.uid;
}

bool HostScan::Scanner::MayBeOfJob(const KnownProcess& known) const {
  return known.stuck || known.view.launched.has_value() || known.view.preloaded ||
         known.view.segment.has_value() || !known.view.run_folder.empty();
}

// Spreads the reads of old processes over the scans.
bool HostScan::Scanner::IsTurn(pid_t pid) const {
  return (result_->number + static_cast<uint64_t>(pid)) % kRescanAfter == 0;
}

bool HostScan::Scanner::MustReadStat(const KnownProcess& known) const {
  if (known.stat.is_kernel_thread) return false;
  if (maps_ == MapsToRead::kAll) return true;
  if (known.served && maps_ == MapsToRead::kChanged && !known.with_maps) return true;
  // A young process often executes another program.
  return MayBeOfJob(known) || result_->number - known.first_in < kRescanAfter ||
         IsTurn(known.stat.pid);
}

bool HostScan::Scanner::MustRead(const ProcStat& stat, const KnownProcess& known) const {
  const bool is_blocked = known.stuck && !known.too_late;
  if (!known.was_read || is_blocked || !known.view.run_folder.empty()) return true;
  if (known.stat.program != stat.program) return true;
  return known.too_late ? IsTurn(stat.pid) : MustReadMaps(stat, known);
}

// The maps of a process of PyTorch have thousands of lines, and its data loaders have the library
// too.
bool HostScan::Scanner::MustReadMaps(const ProcStat& stat, const KnownProcess& known) const {
  if (maps_ == MapsToRead::kNone) return false;
  if (known.view.segment.has_value()) return !known.view.error.empty();
  if (!known.with_maps || IsTurn(stat.pid)) return true;
  if (!known.view.preloaded) return false;
  return maps_ == MapsToRead::kAll ||
         stat.virtual_bytes >= known.maps_bytes + segment::kMappedBytes;
}

// False if the user has had the share of this scan. The next one reads the process.
bool HostScan::Scanner::HasShare(const ProcStat& stat, KnownProcess* known) const {
  const auto spent = spent_ns_.find(known->payer);
  const bool has_share =
      result_->number == 1 || spent == spent_ns_.end() || spent->second <= options_.user_share_ns;
  if (!has_share && known->stat.program != stat.program) known->was_read = false;
  return has_share;
}

void HostScan::Scanner::Read(const ProcStat& stat, KnownProcess* known) {
  known->payer = PayerOfReads(options_.proc_root, stat.pid);
  if (!HasShare(stat, known)) return;
  const bool again = known->was_read && known->stat.program == stat.program && !known->stuck;
  const bool with_maps = maps_ != MapsToRead::kNone;
  auto view = std::make_shared<ProcessView>(again ? known->view : ProcessView());
  const auto read = [options = options_, threads = threads_, stat, with_maps, again, view] {
    const bool of_run = !view->run_folder.empty();
    if (of_run && ServedByRun(view->run_folder)) return;
    if (of_run || !again) {
      *view = ProcessView();
      ReadEnviron(options, stat, view.get());
    }
    if (with_maps) ReadMaps(options, stat, threads, view.get());
  };
  known->was_read = true;
  known->with_maps = with_maps;
  known->maps_bytes = stat.virtual_bytes;
  const int64_t begun_ns = MonotonicNs();
  const bool in_time = threads_->Run(absl::StrCat("memory of ", stat.pid), read,
                                     options_.read_timeout_ns, known->payer);
  known->too_late = in_time && view->too_late;
  known->stuck = !in_time || view->too_late;
  spent_ns_[known->payer] += MonotonicNs() - begun_ns;
  if (known->stuck) return;
  known->view = *view;
  known->without_facts = known->without_facts && again;
  known->rank_dropped = known->rank_dropped && again;
}

// Waits for several scans before it warns: on an overloaded host any read may time out.
void HostScan::Scanner::ReportStuck(pid_t pid, const std::string& name, int64_t user) {
  if (++scans_stuck_[pid] < kReportStuckAfterScans) return;
  result_->faults.push_back(
      {absl::StrCat("process ", pid, name.empty() ? "" : " (", name, name.empty() ? "" : ")",
                    ": reads of its /proc files time out; left out until they succeed"),
       user});
}

// An owner whose processes block many threads gets no more.
void HostScan::Scanner::DropUsersWithManyStuck(std::vector<pid_t>* pids) const {
  if (stuck_.size() < SpareThreads::kMostOfPayer) return;
  std::map<int64_t, size_t> stuck_of;
  for (const auto& [pid, stats] : stuck_) ++stuck_of[PayerOfReads(options_.proc_root, pid)];
  const auto has_many = [&](pid_t pid) {
    const auto stuck = stuck_of.find(PayerOfReads(options_.proc_root, pid));
    return stuck != stuck_of.end() && stuck->second >= SpareThreads::kMostOfPayer;
  };
  pids->erase(std::remove_if(pids->begin(), pids->end(), has_many), pids->end());
}

// Reads the processes in batches: one thread switch for each of thousands would cost more. After a
// read that blocks, the rest of the batch continues on another thread.
std::vector<ProcStat> HostScan::Scanner::ReadStatsInTime(std::vector<pid_t> left) {
  const auto is_stuck = [this](pid_t pid) {
    const auto stuck = stuck_.find(pid);
    if (stuck == stuck_.end()) return false;
    if (!stuck->second->returned) {
      ReportStuck(pid, "", PayerOfReads(options_.proc_root, pid));
      return true;
    }
    stuck_.erase(stuck);
    return false;
  };
  left.erase(std::remove_if(left.begin(), left.end(), is_stuck), left.end());
  DropUsersWithManyStuck(&left);
  std::vector<ProcStat> all;
  for (size_t at = 0; at < left.size();) {
    const auto first = left.begin() + static_cast<ptrdiff_t>(at);
    const size_t count = std::min(kStatsTogether, left.size() - at);
    const auto stats =
        std::make_shared<Stats>(std::vector<pid_t>(first, first + static_cast<ptrdiff_t>(count)));
    const std::string key = absl::StrCat("stats ", result_->number, " ", left[at]);
    const auto read = [root = options_.proc_root, stats] { ReadStats(root, stats.get()); };
    threads_->Run(key, read, options_.read_timeout_ns);
    stats->abandoned = true;
    const size_t done = stats->done;
    for (size_t i = 0; i < done; ++i) {
      if (stats->stats[i].has_value()) all.push_back(*stats->stats[i]);
    }
    at += done;
    if (done == count) continue;
    stuck_[left[at]] = stats;
    ReportStuck(left[at], "", PayerOfReads(options_.proc_root, left[at]));
    left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(at) + 1);
    DropUsersWithManyStuck(&left);
    at = 0;
  }
  return all;
}

bool HostScan::Scanner::IsLeftOut(KnownProcess* known) {
  if (known->view.launched->rank.coordinates.rank < 0) return false;
  if (++launched_[known->payer] > options_.most_launched_of_user) {
    known->view.launched->launch = LaunchFacts();
    known->without_facts = true;
  } else if (known->without_facts) {
    known->was_read = false;  // the next scan reads them again
  }
  return known->without_facts;
}

void HostScan::Scanner::ReportLaunched(KnownProcess* known) {
  if (IsLeftOut(known)) return;
  DiscoveredProcess launched = *known->view.launched;
  launched.ppid = known->stat.ppid;
  launched.name = known->stat.name;
  result_->launched.push_back(std::move(launched));
}

// Of all that are known: a scan does not look at each of them again.
std::vector<UnrecordedRank> HostScan::Scanner::FindUnrecorded() {
  std::vector<UnrecordedRank> ranks;
  std::map<int64_t, size_t> of_user;
  for (auto& [pid, known] : known_) {
    ProcessView& view = known.view;
    const bool is_rank = known.rank_dropped || view.unrecorded != nullptr;
    if (!known.served || !is_rank || IsRecorded(view)) continue;
    if (++of_user[known.payer] > options_.most_unrecorded_of_user) {
      ++result_->unrecorded_left_out;
      view.unrecorded = nullptr;
      known.rank_dropped = true;
      continue;
    }
    if (view.unrecorded == nullptr) {
      ++result_->unrecorded_left_out;
      known.was_read = false;  // a next scan reads it again
      continue;
    }
    ranks.push_back(*view.unrecorded);
    ranks.back().payer = known.payer;
    ranks.back().process.ppid = known.stat.ppid;
    ranks.back().process.name = known.stat.name;
  }
  return ranks;
}

std::vector<pid_t> HostScan::Scanner::AncestorsOf(pid_t pid) const {
  constexpr size_t kMostAncestors = 32;
  std::vector<pid_t> ancestors;
  for (auto at = known_.find(pid); at != known_.end() && ancestors.size() < kMostAncestors;
       at = known_.find(at->second.stat.ppid)) {
    ancestors.push_back(at->second.stat.ppid);
  }
  return ancestors;
}

// Processes that run with the library, and those above them.
std::set<pid_t> HostScan::Scanner::FindRecorded() const {
  std::set<pid_t> recorded;
  for (const auto& [pid, known] : known_) {
    if (!known.served || !IsRecorded(known.view)) continue;
    recorded.insert(pid);
    for (const pid_t ancestor : AncestorsOf(pid)) recorded.insert(ancestor);
  }
  return recorded;
}

// Whether it, what it has started or what has started it runs with the library.
bool HostScan::Scanner::IsRelatedToRecorded(pid_t pid, const std::set<pid_t>& recorded) const {
  if (recorded.count(pid) != 0) return true;
  const std::vector<pid_t> ancestors = AncestorsOf(pid);
  return std::any_of(ancestors.begin(), ancestors.end(), [this](pid_t ancestor) {
    const auto at = known_.find(ancestor);
    return at != known_.end() && IsRecorded(at->second.view);
  });
}

void HostScan::Scanner::KeepRank(UnrecordedRank rank, pid_t launcher) {
  rank.process.is_main = true;
  rank.marks.push_back({"launcher", absl::StrCat(launcher), true});
  result_->unrecorded.push_back(std::move(rank));
}

// Ranks of which nothing is recorded, with the process that has started them as a mark.
void HostScan::Scanner::KeepUnrecorded() {
  std::vector<UnrecordedRank> all = FindUnrecorded();
  if (all.empty()) return;
  std::vector<DiscoveredProcess> processes;
  for (const UnrecordedRank& rank : all) processes.push_back(rank.process);
  MarkMainProcesses(&processes);
  const std::set<pid_t> recorded = FindRecorded();
  std::map<pid_t, int> rank_of;
  for (const DiscoveredProcess& process : processes) {
    rank_of[process.process.pid] = process.rank.coordinates.rank;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const pid_t pid = processes[i].process.pid;
    if (!processes[i].is_main || IsRelatedToRecorded(pid, recorded)) continue;
    // The ancestor that has started several ranks, or the shell of each.
    const std::vector<pid_t> ancestors = AncestorsOf(pid);
    const auto launcher = std::find_if(ancestors.begin(), ancestors.end(), [&](pid_t ancestor) {
      const auto rank = rank_of.find(ancestor);
      return rank == rank_of.end() || rank->second != processes[i].rank.coordinates.rank;
    });
    KeepRank(std::move(all[i]), launcher == ancestors.end() ? 0 : *launcher);
  }
}

// Ranks that only their connections show.
void HostScan::Scanner::KeepTalkers() {
  std::vector<MeshSearch::Candidate> candidates;
  for (const auto& [pid, known] : known_) {
    const ProcessView& view = known.view;
    if (!known.served || view.talker == nullptr || IsRecorded(view)) continue;
    candidates.push_back({view.talker->process.process,
                          {pid, known.stat.ppid, view.talker->script, view.libraries},
                          known.payer});
  }
  const auto is_above = [this](pid_t above, pid_t pid) {
    const std::vector<pid_t> ancestors = AncestorsOf(pid);
    return std::find(ancestors.begin(), ancestors.end(), above) != ancestors.end();
  };
  const std::map<ProcessId, pid_t>& meshes = meshes_.Find(result_->number, candidates, is_above);
  if (meshes.empty()) return;
  const std::set<pid_t> recorded = FindRecorded();
  for (const MeshSearch::Candidate& candidate : candidates) {
    const auto mesh = meshes.find(candidate.process);
    if (mesh == meshes.end() || IsRelatedToRecorded(candidate.talker.pid, recorded)) continue;
    UnrecordedRank rank = *known_.at(candidate.talker.pid).view.talker;
    rank.payer = candidate.payer;
    rank.process.ppid = candidate.talker.ppid;
    rank.marks.push_back({"mesh", absl::StrCat(mesh->second), true});
    KeepRank(std::move(rank), candidate.talker.ppid);
  }
}

void HostScan::Scanner::WarnOfManyLaunched() {
  for (const auto& [payer, count] : launched_) {
    if (count <= options_.most_launched_of_user) continue;
    result_->faults.push_back(
        {absl::StrCat(PayerInWords(payer), " has more than ", options_.most_launched_of_user,
                      " processes with a rank in their environment; the others are left out"),
         payer});
  }
}

void HostScan::Scanner::Report(KnownProcess* known) {
  const ProcStat& stat = known->stat;
  const std::string name = Printable(stat.name.c_str(), stat.name.size());
  if (known->stuck) return ReportStuck(stat.pid, name, known->payer);
  scans_stuck_.erase(stat.pid);
  const ProcessView& view = known->view;
  if (!view.run_folder.empty()) return;
  // Report an error in the second scan only: a new segment may be incomplete in the first.
  if (!view.error.empty() && known->failed_before) {
    result_->faults.push_back({view.error, known->payer});
  }
  known->failed_before = !view.error.empty();
  if (view.launched.has_value()) ReportLaunched(known);
  if (!view.segment.has_value()) return;
  MappedSegment segment;
  segment.mapper.process = {stat.pid, stat.start_time};
  segment.mapper.own_pid = view.own_pid;
  segment.mapper.pid_namespace = view.pid_namespace;
  segment.device = view.segment->device;
  segment.inode = view.segment->inode;
  segment.reader = view.reader;
  segment.claim = view.claim;
  result_->segments.push_back(std::move(segment));
}

void HostScan::Scanner::Scan(uint64_t number, MapsToRead maps) {
  result_ = std::make_shared<ScanResult>();
  result_->number = number;
  maps_ = maps;
  spent_ns_.clear();
  launched_.clear();
  const std::map<pid_t, uint64_t> inodes =
      ListNumbersWithInodes(options_.proc_root).value_or(std::map<pid_t, uint64_t>());
  std::map<pid_t, KnownProcess> still_there;
  std::vector<pid_t> due;
  for (const auto& [pid, inode] : inodes) {
    const auto before = known_.find(pid);
    if (before == known_.end() || before->second.inode != inode || MustReadStat(before->second)) {
      due.push_back(pid);
    } else {
      still_there.insert(known_.extract(before));
    }
  }
  for (const ProcStat& stat : ReadStatsInTime(std::move(due))) {
    KnownProcess& known = still_there[stat.pid];
    const auto before = known_.find(stat.pid);
    if (before != known_.end() && before->second.stat.start_time == stat.start_time) {
      known = std::move(before->second);
    } else {
      known.first_in = number;
    }
    known.inode = inodes.at(stat.pid);
    known.served = IsServed(stat);
    if (known.served && MustRead(stat, known)) Read(stat, &known);
    known.stat = stat;
    if (known.served) Report(&known);
  }
  known_ = std::move(still_there);
  WarnOfManyLaunched();
  MarkMainProcesses(&result_->launched);
  KeepUnrecorded();
  KeepTalkers();
  const MutexLock lock(mutex_);
  newest_ = std::move(result_);
}

HostScan::HostScan(ScanOptions options, std::shared_ptr<SpareThreads> threads)
    : threads_(threads), scanner_(std::make_shared<Scanner>(std::move(options), threads)) {}

HostScan::~HostScan() = default;

void HostScan::Poll(int64_t now_ns, int64_t every_ns, MapsToRead maps, int64_t wait_ns) {
  if (threads_->IsRunning(kScan)) return;
  if (begun_ != 0 && now_ns - begun_ns_ < every_ns) return;
  ++begun_;
  begun_ns_ = now_ns;
  threads_->Run(
      kScan, [scanner = scanner_, number = begun_, maps] { scanner->Scan(number, maps); }, wait_ns);
}

std::shared_ptr<const ScanResult> HostScan::newest() const { return scanner_->newest(); }

}  // namespace rollcall
