// SPDX-License-Identifier: Apache-2.0
#include "agent/host_scan.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_maps.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_namespaces.h"
#include "agent/segments/shared_reader.h"

namespace rollcall {
namespace {

constexpr size_t kMaxMapsBytes = 64 << 20;
constexpr char kScan[] = "scan";
constexpr int kReportStuckAfterScans = 3;
constexpr size_t kStatsTogether = 64;
// A process that showed nothing of the library may load it later, as a plugin of NCCL.
constexpr uint64_t kRescanAfter = 10;

absl::string_view BaseName(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// What one process shows of its memory. Filled by a thread that may not come back.
struct Seen {
  std::optional<DiscoveredProcess> launched;
  bool preloaded = false;
  std::optional<ProcMap> segment;
  pid_t own_pid = 0;
  uint64_t pid_namespace = 0;
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  std::string run_folder;  // of the `rollcall run` that serves it; "": none does
  std::string error;  // why the segment could not be opened
};

bool IsMapped(int fd, const ProcMap& map) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_ino != map.inode) return false;
  struct statfs system;
  // btrfs gives maps another device than stat().
  return about.st_dev == map.device ||
         (fstatfs(fd, &system) == 0 && system.f_type == BTRFS_SUPER_MAGIC);
}

// The file behind the mapping: by its name in the process's own file system, by the mapping itself
// (which needs CAP_CHECKPOINT_RESTORE, and no name), or by its name here (a process in a chroot).
UniqueFd OpenMapped(const std::string& proc_root, pid_t pid, const ProcMap& map) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  const auto open_if_same = [&map](const std::string& path, int flags) {
    UniqueFd fd(open(path.c_str(), flags));
    return fd.valid() && IsMapped(fd.get(), map) ? std::move(fd) : UniqueFd();
  };
  UniqueFd fd = open_if_same(absl::StrCat(ProcPath(proc_root, pid, "root"), map.path),
                             kFlags | O_NOFOLLOW);
  const int error = errno;
  if (fd.valid()) return fd;
  fd = open_if_same(ProcPath(proc_root, pid, absl::StrFormat("map_files/%x-%x", map.start, map.end)),
                    kFlags);
  if (fd.valid()) return fd;
  fd = open_if_same(map.path, kFlags | O_NOFOLLOW);
  errno = error;
  return fd;
}

void OpenSegment(const std::string& proc_root, pid_t pid,
                 const std::shared_ptr<SpareThreads>& threads, Seen* seen) {
  const ProcMap& map = *seen->segment;
  UniqueFd fd = OpenMapped(proc_root, pid, map);
  if (!fd.valid()) {
    seen->error = absl::StrCat("process ", pid, ": its segment ", map.path, " cannot be opened: ",
                               map.deleted ? "it was deleted" : strerror(errno));
    return;
  }
  auto reader = SegmentReader::Take(map.path, std::move(fd));
  absl::StatusOr<SegmentClaim> claim =
      reader.ok() ? (*reader)->Claim() : absl::StatusOr<SegmentClaim>(reader.status());
  if (!claim.ok()) {
    seen->error = absl::StrCat("process ", pid, ": skipped: ", claim.status().message());
    return;
  }
  seen->reader = ShareReader(*std::move(reader), threads);
  seen->claim = *claim;
}

// A host's agent leaves the processes of a `rollcall run` alone while that serves them itself.
void FindRunFolder(const ScanOptions& options, pid_t pid, const std::string& folder, Seen* seen) {
  if (!options.whole_host || folder.empty()) return;
  const std::string path = absl::StrCat(ProcPath(options.proc_root, pid, "root"), folder);
  if (ServedByRun(path)) seen->run_folder = path;
}

void ReadMapsOf(const ScanOptions& options, pid_t pid,
                const std::shared_ptr<SpareThreads>& threads, Seen* seen) {
  const auto text = ReadProcFile(ProcPath(options.proc_root, pid, "maps"), kMaxMapsBytes);
  if (!text.ok()) return;
  for (ProcMap& map : ParseProcMaps(*text)) {
    const absl::string_view name = BaseName(map.path);
    if (name == "librollcall.so") seen->preloaded = true;
    if (map.offset == 0 && map.inode != 0 && IsSegmentName(std::string(name))) {
      seen->segment = std::move(map);
    }
  }
  seen->error.clear();
  if (!seen->segment.has_value()) return;
  seen->own_pid = ReadOwnPid(options.proc_root, pid);
  seen->pid_namespace = ReadPidNamespace(options.proc_root, pid);
  if (!options.whole_host) return;
  FindRunFolder(options, pid, FolderOf(seen->segment->path), seen);
  if (seen->run_folder.empty()) OpenSegment(options.proc_root, pid, threads, seen);
}

void ReadEnvironOf(const ScanOptions& options, const ProcStat& stat, Seen* seen) {
  const auto environ =
      ReadProcFile(ProcPath(options.proc_root, stat.pid, "environ"), kMaxEnvironBytes);
  if (!environ.ok()) return;
  seen->launched = DiscoverIn(*environ, stat, options.discover_directory);
  if (!seen->launched.has_value()) return;
  seen->preloaded = true;
  FindRunFolder(options, stat.pid, seen->launched->directory, seen);
}

// What /proc/PID/stat says of many processes. Filled in order by a thread that may not come back.
struct Stats {
  explicit Stats(std::vector<pid_t> of) : pids(std::move(of)), stats(pids.size()) {}

  const std::vector<pid_t> pids;
  std::vector<std::optional<ProcStat>> stats;  // those before `done` are there
  std::atomic<size_t> done{0};
  std::atomic<bool> abandoned{false};
  std::atomic<bool> returned{false};  // after it was abandoned
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
    const bool same_file = segment.reader != nullptr ? segment.reader->IsFile(device, inode)
                                                     : segment.inode == inode;
    if (same_file) mappers.push_back(segment.mapper);
  }
  return mappers;
}

// Keeps what is known of each process. One scan at a time; its results are handed over whole.
class HostScan::Scanner {
 public:
  Scanner(ScanOptions options, std::shared_ptr<SpareThreads> threads)
      : options_(std::move(options)), threads_(std::move(threads)) {}

  void Scan(uint64_t number, bool with_maps);

  std::shared_ptr<const ScanResult> newest() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return newest_;
  }

 private:
  struct Known {
    uint64_t start_time = 0, program = 0;
    uint64_t read_in = 0;  // number of the scan that read it; 0: none yet
    bool with_maps = false;
    bool stuck = false;
    bool failed_before = false;  // to open its segment
    Seen seen;
  };

  std::vector<ProcStat> ReadAllStats();
  void ReportStuck(pid_t pid, const std::string& name);
  bool IsServed(const ProcStat& stat) const;
  bool MustRead(const ProcStat& stat, const Known& known, bool with_maps) const;
  void Read(const ProcStat& stat, bool with_maps, Known* known);
  void Report(const ProcStat& stat, Known* known);

  const ScanOptions options_;
  const std::shared_ptr<SpareThreads> threads_;
  std::map<pid_t, Known> known_;
  std::map<pid_t, std::shared_ptr<Stats>> stuck_;  // whose stat has not come back
  std::map<pid_t, int> scans_stuck_;               // in a row
  std::shared_ptr<ScanResult> result_;             // the one under way

  mutable std::mutex mutex_;
  std::shared_ptr<const ScanResult> newest_;
};

bool HostScan::Scanner::IsServed(const ProcStat& stat) const {
  if (stat.is_kernel_thread || stat.state == 'Z' || stat.state == 'X') return false;
  if (options_.whole_host) return true;
  struct stat directory;
  const std::string path = absl::StrCat(options_.proc_root, "/", stat.pid);
  return ::stat(path.c_str(), &directory) == 0 && directory.st_uid == options_.uid;
}

bool HostScan::Scanner::MustRead(const ProcStat& stat, const Known& known, bool with_maps) const {
  if (known.read_in == 0 || known.stuck || !known.seen.run_folder.empty()) return true;
  if (known.program != stat.program) return true;
  if (!with_maps) return false;
  if (known.seen.segment.has_value()) return !known.seen.error.empty();
  if (!known.with_maps || known.seen.preloaded) return true;
  // Not all of them in the same scan.
  return (result_->number + static_cast<uint64_t>(stat.pid)) % kRescanAfter == 0;
}

void HostScan::Scanner::Read(const ProcStat& stat, bool with_maps, Known* known) {
  const bool again = known->read_in != 0 && known->program == stat.program && !known->stuck;
  auto seen = std::make_shared<Seen>(again ? known->seen : Seen());
  const auto read = [options = options_, threads = threads_, stat, with_maps, again, seen] {
    const bool of_run = !seen->run_folder.empty();
    if (of_run && ServedByRun(seen->run_folder)) return;
    if (of_run || !again) {
      *seen = Seen();
      ReadEnvironOf(options, stat, seen.get());
    }
    if (with_maps) ReadMapsOf(options, stat.pid, threads, seen.get());
  };
  known->read_in = result_->number;
  known->program = stat.program;
  known->with_maps = with_maps;
  known->stuck = !threads_->Run(absl::StrCat("memory of ", stat.pid), read,
                                options_.read_timeout_ns);
  if (!known->stuck) known->seen = *seen;
}

// Not at once: on an overloaded host any read may be late.
void HostScan::Scanner::ReportStuck(pid_t pid, const std::string& name) {
  if (++scans_stuck_[pid] < kReportStuckAfterScans) return;
  result_->notes.push_back(
      absl::StrCat("process ", pid, name.empty() ? "" : " (", name, name.empty() ? "" : ")",
                   " does not let itself be looked at in /proc; it is left out "
                   "until it does"));
}

// Some on one thread, as long as it comes back: handing over each of thousands would cost more.
std::vector<ProcStat> HostScan::Scanner::ReadAllStats() {
  std::vector<pid_t> left = ListNumbers(options_.proc_root).value_or(std::vector<pid_t>());
  const auto is_stuck = [this](pid_t pid) {
    const auto stuck = stuck_.find(pid);
    if (stuck == stuck_.end()) return false;
    if (!stuck->second->returned) {
      ReportStuck(pid, "");
      return true;
    }
    stuck_.erase(stuck);
    return false;
  };
  left.erase(std::remove_if(left.begin(), left.end(), is_stuck), left.end());
  std::vector<ProcStat> all;
  for (size_t at = 0; at < left.size();) {
    const auto first = left.begin() + static_cast<ptrdiff_t>(at);
    const size_t count = std::min(kStatsTogether, left.size() - at);
    const auto stats =
        std::make_shared<Stats>(std::vector<pid_t>(first, first + static_cast<ptrdiff_t>(count)));
    const std::string key = absl::StrCat("stats ", result_->number, " ", at);
    const auto read = [proc_root = options_.proc_root, stats] { ReadStats(proc_root, stats.get()); };
    threads_->Run(key, read, options_.read_timeout_ns);
    stats->abandoned = true;
    const size_t done = stats->done;
    for (size_t i = 0; i < done; ++i) {
      if (stats->stats[i].has_value()) all.push_back(*stats->stats[i]);
    }
    at += done;
    if (done == count) continue;
    stuck_[left[at]] = stats;
    ReportStuck(left[at], "");
    ++at;
  }
  return all;
}

void HostScan::Scanner::Report(const ProcStat& stat, Known* known) {
  const std::string name = Printable(stat.name.c_str(), stat.name.size());
  if (known->stuck) return ReportStuck(stat.pid, name);
  scans_stuck_.erase(stat.pid);
  const Seen& seen = known->seen;
  if (!seen.run_folder.empty()) return;
  // A segment that is just being made is given time.
  if (!seen.error.empty() && known->failed_before) result_->notes.push_back(seen.error);
  known->failed_before = !seen.error.empty();
  if (seen.launched.has_value()) {
    DiscoveredProcess launched = *seen.launched;
    launched.ppid = stat.ppid;
    launched.name = stat.name;
    result_->launched.push_back(std::move(launched));
  }
  if (!seen.segment.has_value()) return;
  MappedSegment segment;
  segment.mapper.process = {stat.pid, stat.start_time};
  segment.mapper.own_pid = seen.own_pid;
  segment.mapper.pid_namespace = seen.pid_namespace;
  segment.device = seen.segment->device;
  segment.inode = seen.segment->inode;
  segment.reader = seen.reader;
  segment.claim = seen.claim;
  result_->segments.push_back(std::move(segment));
}

void HostScan::Scanner::Scan(uint64_t number, bool with_maps) {
  result_ = std::make_shared<ScanResult>();
  result_->number = number;
  std::map<pid_t, Known> still_there;
  for (const ProcStat& stat : ReadAllStats()) {
    if (!IsServed(stat)) continue;
    Known& known = still_there[stat.pid];
    const auto before = known_.find(stat.pid);
    if (before != known_.end() && before->second.start_time == stat.start_time) {
      known = std::move(before->second);
    }
    known.start_time = stat.start_time;
    if (MustRead(stat, known, with_maps)) Read(stat, with_maps, &known);
    Report(stat, &known);
  }
  known_ = std::move(still_there);
  MarkMainProcesses(&result_->launched);
  const std::lock_guard<std::mutex> lock(mutex_);
  newest_ = std::move(result_);
}

HostScan::HostScan(ScanOptions options, std::shared_ptr<SpareThreads> threads)
    : threads_(threads), scanner_(std::make_shared<Scanner>(std::move(options), threads)) {}

HostScan::~HostScan() = default;

void HostScan::Poll(int64_t now_ns, int64_t every_ns, bool with_maps, int64_t wait_ns) {
  if (threads_->IsAway(kScan)) return;
  if (begun_ != 0 && now_ns - begun_ns_ < every_ns) return;
  ++begun_;
  begun_ns_ = now_ns;
  threads_->Run(
      kScan, [scanner = scanner_, number = begun_, with_maps] { scanner->Scan(number, with_maps); },
      wait_ns);
}

std::shared_ptr<const ScanResult> HostScan::newest() const { return scanner_->newest(); }

}  // namespace rollcall
