// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/segment_files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/payer.h"
#include "agent/segments/shared_reader.h"
#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kFileTimeout = kSecond / 20;
// A watch detects new files at once, except those of other hosts.
constexpr int64_t kListEvery = kSecond / 2;
// One key for all uses of the folder: an unresponsive file server blocks one thread at most.
constexpr char kFolderKey[] = "directory";
// On an overloaded host any read may time out once.
constexpr int64_t kReportStuckAfter = 10 * kSecond;
// The library writes the magic of a new segment last.
constexpr int64_t kGiveUpAfter = 2 * kSecond;
// After that time the folder retries a segment that can still become complete at this interval.
constexpr int64_t kTryAgainEvery = 5 * kSecond;
constexpr int64_t kTryForRoomEvery = 10 * kSecond;
constexpr size_t kMostListed = 65536;  // names of segments in the folder

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
  std::shared_ptr<SegmentReader> reader;  // nullptr if `claim` has the error
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
  opened->claim = opened->reader->file().Claim();
}

// Whether no process can be using the file: the path still names this file, and every process that
// may have inherited its mapping has ended.
bool MayDelete(const std::string& path, const SegmentReader& reader, const SegmentClaim& claim,
               uint64_t own_namespace) {
  struct stat about;
  if (lstat(path.c_str(), &about) != 0 || !reader.file().Is(about.st_dev, about.st_ino))
    return false;
  if (claim.life_lock) return reader.file().Lock() == HeldLock::kFree;
  return own_namespace != 0 && claim.pid_namespace == own_namespace;
}

std::string FileKey(const std::string& name) { return absl::StrCat("file ", name); }

}  // namespace

SegmentFiles::SegmentFiles(Options options, std::shared_ptr<SpareThreads> threads, FaultLog* faults)
    : options_(std::move(options)), threads_(std::move(threads)), faults_(faults) {}

bool SegmentFiles::MustList(int64_t now_ns) {
  if (watch_ == nullptr) return true;
  const FolderWatch::News news = watch_->Take();
  if (news == FolderWatch::News::kGone) watch_ = nullptr;
  const bool retries =
      std::any_of(unreadable_.begin(), unreadable_.end(),
                  [now_ns](const auto& entry) { return entry.second.again_ns <= now_ns; });
  return news != FolderWatch::News::kNone || retries || now_ns - listed_ns_ >= kListEvery;
}

// `names`: of the files that are there, sorted.
void SegmentFiles::ForgetRemoved(const std::vector<std::string>& names) {
  for (auto at = unreadable_.begin(); at != unreadable_.end();) {
    const bool is_there = std::binary_search(names.begin(), names.end(), at->first);
    at = is_there ? std::next(at) : unreadable_.erase(at);
  }
}

bool SegmentFiles::Look(int64_t now_ns, uint64_t next_scan, const std::function<bool()>& has_room) {
  if (!MustList(now_ns)) return false;
  auto listing = std::make_shared<Listing>();
  const auto list = [directory = options_.path, skips_runs = options_.skips_runs,
                     watch = threads_ != nullptr && watch_ == nullptr, listing] {
    if (watch) listing->watch = FolderWatch::Open(directory);  // before the list
    if (!skips_runs || !ServedByRun(directory)) listing->names = ListSegments(directory);
  };
  if (threads_ == nullptr) {
    list();
  } else if (!threads_->Run(kFolderKey, list, kFileTimeout)) {
    if (stuck_since_ns_ == 0) stuck_since_ns_ = now_ns;
    if (now_ns - stuck_since_ns_ > kReportStuckAfter) {
      faults_->Add(
          absl::StrCat(options_.path, ": the file system does not answer; left out until it does"));
    }
    return false;
  }
  stuck_since_ns_ = 0;
  listed_ns_ = now_ns;
  if (listing->watch != nullptr) watch_ = std::move(listing->watch);
  ForgetRemoved(listing->names);
  bool has_opened = false;
  for (const std::string& name : listing->names) {
    if (!IsNew(name, now_ns)) continue;
    if (has_room()) {
      has_opened = Open(name, now_ns, next_scan) || has_opened;
    } else {
      LeaveOut(name, now_ns);
    }
  }
  return has_opened;
}

bool SegmentFiles::IsNew(const std::string& name, int64_t now_ns) const {
  if (waiting_.count(name) != 0) return false;
  const auto known = known_.find(name);
  if (known == known_.end()) {
    const auto tried = unreadable_.find(name);
    return tried == unreadable_.end() || now_ns >= tried->second.again_ns;
  }
  // After exec(), the new program of the process creates a new file with the same name.
  const std::shared_ptr<SegmentReader> reader = known->second.lock();
  return reader != nullptr && IsDeleted(name, reader);
}

bool SegmentFiles::IsDeleted(const std::string& name,
                             const std::shared_ptr<SegmentReader>& reader) const {
  if (threads_ == nullptr || !reader->file().MayBlock()) return reader->file().Deleted();
  return threads_
      ->Get<bool>(
          FileKey(name), [reader] { return reader->file().Deleted(); }, kFileTimeout)
      .value_or(false);
}

bool SegmentFiles::Open(const std::string& name, int64_t now_ns, uint64_t next_scan) {
  auto opened = std::make_shared<Opened>();
  const auto open = [path = absl::StrCat(options_.path, "/", name), threads = threads_, opened] {
    OpenFile(path, threads, opened.get());
  };
  if (threads_ == nullptr) {
    open();
  } else if (!threads_->Run(FileKey(name), open, kFileTimeout)) {
    return false;
  }
  if (!opened->claim.ok()) {
    RetryOrGiveUp(name, now_ns, opened->claim.status(), opened->payer);
    return false;
  }
  if (threads_ != nullptr && !opened->claim->of_this_boot) {
    unreadable_[name].again_ns = INT64_MAX;
    faults_->Add(
        absl::StrCat(opened->reader->file().path(), ": from another host or an earlier boot: ",
                     "left out; rollcall analyze reads it"),
        opened->payer);
    return false;
  }
  waiting_[name] = {std::move(opened->reader), *opened->claim, next_scan};
  return true;
}

void SegmentFiles::SetKnown(const std::string& name, const std::shared_ptr<SegmentReader>& reader) {
  known_[name] = reader;
  unreadable_.erase(name);
}

void SegmentFiles::RetryOrGiveUp(const std::string& name, int64_t now_ns, const absl::Status& why,
                                 int64_t payer) {
  OpenAttempt& tried = unreadable_.emplace(name, OpenAttempt{now_ns, now_ns}).first->second;
  if (threads_ != nullptr && now_ns - tried.first_ns < kGiveUpAfter) return;
  if (threads_ != nullptr && absl::IsUnavailable(why)) {
    tried.again_ns = now_ns + kTryAgainEvery;
    return;
  }
  tried.again_ns = INT64_MAX;
  faults_->Add(absl::StrCat("skipped: ", why.message()), payer);
}

void SegmentFiles::LeaveOut(const std::string& name, int64_t now_ns) {
  unreadable_[name] = {now_ns, now_ns + kTryForRoomEvery, true};
  faults_->Add(absl::StrCat(options_.path, ": ", options_.when_full));
}

size_t SegmentFiles::CountLeftOut() const {
  return static_cast<size_t>(
      std::count_if(unreadable_.begin(), unreadable_.end(),
                    [](const auto& entry) { return entry.second.is_left_out; }));
}

bool SegmentFiles::Delete(const std::string& name, const std::shared_ptr<SegmentReader>& reader,
                          const SegmentClaim& claim, uint64_t own_namespace) {
  if (name.empty()) return true;
  const auto remove = [path = absl::StrCat(options_.path, "/", name), reader, claim,
                       own_namespace] {
    return MayDelete(path, *reader, claim, own_namespace) && unlink(path.c_str()) == 0;
  };
  const auto deleted = threads_->Get<bool>(kFolderKey, remove, kFileTimeout);
  if (deleted.value_or(false)) known_.erase(name);
  return deleted.has_value();
}

std::optional<int64_t> SegmentFiles::ReadTime(const std::string& path) const {
  const auto read = [path]() -> int64_t {
    struct stat about;
    if (stat(path.c_str(), &about) != 0) return 0;
    return int64_t{about.st_mtim.tv_sec} * kSecond + about.st_mtim.tv_nsec;
  };
  return threads_->Get<int64_t>(kFolderKey, read, kFileTimeout);
}

bool SegmentFiles::IsBehind() const {
  if (!waiting_.empty() || stuck_since_ns_ != 0) return true;
  for (const auto& [name, tried] : unreadable_) {
    if (tried.again_ns != INT64_MAX && !tried.is_left_out) return true;
  }
  return std::any_of(known_.begin(), known_.end(), [this](const auto& segment) {
    return threads_->IsRunning(FileKey(segment.first));
  });
}

}  // namespace rollcall
