// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/report_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/descriptors.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "daemon/history/history.h"
#include "daemon/report/report_files.h"
#include "daemon/report/writer.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kSpareDescriptors = 8;
constexpr std::chrono::seconds kLastWait{1};
constexpr size_t kMostFolders = 10'000;
// Each may have megabytes of stacks. The kernel writes the others to the disk when it likes.
constexpr size_t kMostUnsynced = 4;

struct Item {
  v1::Incident incident;
  std::string folder;
  int64_t put_ns = 0;  // when its first unwritten state came
  int64_t next_try_ns = 0;
  int failures = 0;
  std::string problem;  // of the last attempt
};

std::string LateNote(const Item& item, int64_t now_ns, int64_t late_after_ns) {
  if (item.problem.empty() || now_ns - item.put_ns < late_after_ns || !item.folder.empty())
    return "";
  return absl::StrCat("written ", DurationInWords(now_ns - item.put_ns),
                      " after the hang was confirmed: ", item.problem);
}

// Fails with kUnavailable if no descriptor is free; the caller then releases some and retries.
absl::Status WriteOnce(const ReportQueueOptions& options, const v1::Incident& incident,
                       std::string* folder) {
  if (folder->empty() && options.continues_reports) {
    *folder = FindReport(options.report_dir, incident);
  }
  if (!folder->empty()) {
    const absl::Status updated = UpdateReport(*folder, incident);
    if (!absl::IsNotFound(updated)) return updated;
    folder->clear();  // the user has removed the folder
  }
  auto created = CreateReport(options.report_dir, incident);
  if (created.ok()) *folder = *std::move(created);
  return created.status();
}

}  // namespace

// Shared with the thread, which may outlive the queue.
struct ReportQueue::Core {
  explicit Core(ReportQueueOptions given) : options(std::move(given)) {}

  void RunWriter();
  void RunSyncer();
  void DeleteOld();
  int64_t DeletesIn(int64_t now_ns) const;
  const Item* NextItem(int64_t now_ns, int64_t* wait_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void WriteNext(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Wait(int64_t wait_ns, int64_t deletes_in_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status Write(Item* item);
  void RecordAttempt(Item item, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void RecordWritten(Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void RecordFailure(Item item, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void RecordUnwritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool HasNewer(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void RecordLoss(const JobKey& job, const std::string& id, const std::string& folder,
                  const std::string& problem) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  size_t Unwritten() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void LogOnce(const std::string& problem) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const ReportQueueOptions options;
  SpareDescriptors spare{kSpareDescriptors};  // only for the writer, as the next one
  int64_t next_delete_ns = 0;

  mutable Mutex mutex;
  Condition wake;
  // Newest unwritten states, by incident.
  std::map<std::string, Item> waiting ABSL_GUARDED_BY(mutex);
  std::string writing ABSL_GUARDED_BY(mutex);  // incident of the report in progress, or empty
  JobKey writing_job ABSL_GUARDED_BY(mutex);
  int64_t writing_since_ns ABSL_GUARDED_BY(mutex) = 0;  // when that state came
  // Written, but perhaps not on the disk, oldest first.
  std::deque<Item> unsynced ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::string> folders ABSL_GUARDED_BY(mutex);  // by incident
  std::set<std::string> live ABSL_GUARDED_BY(mutex);  // incidents that have not closed
  std::vector<Result> written ABSL_GUARDED_BY(mutex);
  Counts counts ABSL_GUARDED_BY(mutex);
  bool finishing ABSL_GUARDED_BY(mutex) = false;
  bool has_written_all ABSL_GUARDED_BY(mutex) = false;  // the writer has ended
  bool abandoned ABSL_GUARDED_BY(mutex) = false;        // the owner has left a thread behind
  bool is_logged ABSL_GUARDED_BY(mutex) = false;        // that reports cannot be written
};

// Returns the item to try next; null if it must wait for `*wait_ns`, or if nothing waits (-1).
const Item* ReportQueue::Core::NextItem(int64_t now_ns, int64_t* wait_ns) {
  const Item* next = nullptr;
  for (const auto& [id, item] : waiting) {
    if (next == nullptr || item.next_try_ns < next->next_try_ns) next = &item;
  }
  *wait_ns = -1;
  if (next == nullptr || finishing || next->next_try_ns <= now_ns) return next;
  *wait_ns = next->next_try_ns - now_ns;
  return nullptr;
}

void ReportQueue::Core::RunWriter() {
  RemoveLeftovers(options.report_dir);
  MutexLock lock(mutex);
  while (!abandoned) {
    int64_t wait_ns = 0;
    const Item* next = NextItem(SteadyNs(), &wait_ns);
    const int64_t deletes_in_ns = DeletesIn(SteadyNs());
    if (next != nullptr) {
      WriteNext(next->incident.id());
    } else if (finishing) {
      break;
    } else if (deletes_in_ns == 0) {
      lock.Unlock();
      DeleteOld();
      lock.Lock();
    } else {
      Wait(wait_ns, deletes_in_ns);
    }
  }
  has_written_all = true;
  wake.NotifyAll();
}

// Negative: for ever.
void ReportQueue::Core::Wait(int64_t wait_ns, int64_t deletes_in_ns) {
  if (deletes_in_ns > 0 && (wait_ns < 0 || deletes_in_ns < wait_ns)) wait_ns = deletes_in_ns;
  if (wait_ns < 0) {
    wake.Wait(mutex);
  } else {
    wake.WaitFor(mutex, std::chrono::nanoseconds(wait_ns));
  }
}

void ReportQueue::Core::WriteNext(const std::string& id) {
  Item item = std::move(waiting.extract(id).mapped());
  writing = item.incident.id();
  writing_job = ReadJobKey(item.incident);
  writing_since_ns = item.put_ns;
  mutex.Unlock();
  const absl::Status status = Write(&item);
  mutex.Lock();
  writing.clear();
  RecordAttempt(std::move(item), status);
}

// Waits for the disk until all reports are written and on it.
void ReportQueue::Core::RunSyncer() {
  MutexLock lock(mutex);
  while (!abandoned) {
    if (unsynced.empty()) {
      if (has_written_all) return;
      wake.Wait(mutex);
      continue;
    }
    Item item = std::move(unsynced.front());
    unsynced.pop_front();
    lock.Unlock();
    const absl::Status status = SyncReport(item.folder);
    lock.Lock();
    // Not found: the user has removed the folder. Unavailable: no descriptor is left; the kernel
    // writes the files to the disk later.
    if (status.ok() || absl::IsNotFound(status) || absl::IsUnavailable(status)) continue;
    if (HasNewer(item.incident.id())) continue;
    RecordFailure(std::move(item), status);
  }
}

// 0 means now; -1 if never.
int64_t ReportQueue::Core::DeletesIn(int64_t now_ns) const {
  return options.keep.HasAny() ? std::max<int64_t>(next_delete_ns - now_ns, 0) : -1;
}

// Deletes some, so that a report that has come meanwhile does not wait long.
void ReportQueue::Core::DeleteOld() {
  const auto is_live = [this](const std::string& id) {
    const MutexLock lock(mutex);
    return live.count(id) != 0 || waiting.count(id) != 0;
  };
  const DeletedReports deleted =
      DeleteOldReports(options.report_dir, options.keep, absl::GetCurrentTimeNanos(), is_live);
  if (!deleted.has_more) next_delete_ns = SteadyNs() + options.delete_every_ns;
  if (deleted.count == 0) return;
  spdlog::info("deleted {} old reports in {}", deleted.count, options.report_dir);
  const MutexLock lock(mutex);
  counts.deleted += deleted.count;
}

absl::Status ReportQueue::Core::Write(Item* item) {
  const std::string note = LateNote(*item, SteadyNs(), options.late_after_ns);
  if (!note.empty()) item->incident.set_report_note(note);
  absl::Status status = WriteOnce(options, item->incident, &item->folder);
  if (absl::IsUnavailable(status)) {
    spare.Release();
    status = WriteOnce(options, item->incident, &item->folder);
    spare.Take();
  }
  return status;
}

void ReportQueue::Core::RecordAttempt(Item item, const absl::Status& status) {
  if (status.ok()) {
    RecordWritten(std::move(item));
  } else {
    RecordFailure(std::move(item), status);
  }
}

void ReportQueue::Core::RecordWritten(Item item) {
  const std::string id = item.incident.id();
  ++counts.written;
  is_logged = false;
  if (folders.size() >= kMostFolders) folders.erase(folders.begin());
  folders[id] = item.folder;
  written.push_back({ReadJobKey(item.incident), id, item.folder, item.incident.report_note()});
  const auto newer = waiting.find(id);
  if (newer != waiting.end()) newer->second.folder = item.folder;
  if (unsynced.size() >= kMostUnsynced) unsynced.pop_front();
  unsynced.push_back(std::move(item));
  wake.NotifyAll();
}

// Whether a newer state of the incident is to be written, or was written since.
bool ReportQueue::Core::HasNewer(const std::string& id) const {
  const auto is_of_it = [&id](const Item& item) { return item.incident.id() == id; };
  return writing == id || waiting.count(id) != 0 ||
         std::any_of(unsynced.begin(), unsynced.end(), is_of_it);
}

// The item could not be written, or not be brought to the disk.
void ReportQueue::Core::RecordFailure(Item item, const absl::Status& status) {
  const std::string id = item.incident.id();
  const auto newer = waiting.find(id);
  ++counts.failed;
  LogOnce(std::string(status.message()));
  if (finishing) {
    RecordLoss(ReadJobKey(item.incident), id, item.folder, std::string(status.message()));
    waiting.erase(id);
    return;
  }
  item.problem = std::string(status.message());
  item.next_try_ns = SteadyNs() + options.retry.PauseNs(++item.failures);
  if (newer != waiting.end()) item.incident = std::move(newer->second.incident);
  waiting[id] = std::move(item);
  wake.NotifyAll();
}

// Adds a result only if no older state of the report is on disk.
void ReportQueue::Core::RecordLoss(const JobKey& job, const std::string& id,
                                   const std::string& folder, const std::string& problem) {
  ++counts.lost;
  if (folder.empty()) written.push_back({job, id, "", absl::StrCat("not written: ", problem)});
}

// Returns the number of incidents.
size_t ReportQueue::Core::Unwritten() const {
  const bool alone = !writing.empty() && waiting.count(writing) == 0;  // no newer state waits
  return waiting.size() + (alone ? 1 : 0);
}

void ReportQueue::Core::LogOnce(const std::string& problem) {
  if (is_logged) return;
  is_logged = true;
  spdlog::error("cannot write the report: {}{}", problem, finishing ? "" : "; trying again later");
}

void ReportQueue::Core::DropOldest() {
  const auto oldest = std::min_element(
      waiting.begin(), waiting.end(),
      [](const auto& a, const auto& b) { return a.second.put_ns < b.second.put_ns; });
  spdlog::error("dropped the report of {}: {} others wait; check the disk of {}", oldest->first,
                waiting.size() - 1, options.report_dir);
  RecordLoss(ReadJobKey(oldest->second.incident), oldest->first, oldest->second.folder,
             "too many reports wait to be written");
  waiting.erase(oldest);
}

ReportQueue::ReportQueue(ReportQueueOptions options)
    : core_(std::make_shared<Core>(std::move(options))) {
  if (core_->options.report_dir.empty()) return;
  writer_.Start();
  syncer_.Start();
  writer_.Post([core = core_] { core->RunWriter(); });
  syncer_.Post([core = core_] { core->RunSyncer(); });
}

ReportQueue::~ReportQueue() { Finish(std::chrono::steady_clock::now() + kLastWait); }

void ReportQueue::Put(v1::Incident incident, const std::string& folder) {
  const MutexLock lock(core_->mutex);
  if (core_->options.report_dir.empty() || core_->finishing) return;
  const std::string id = incident.id();
  if (incident.has_closed_at()) {
    core_->live.erase(id);
  } else {
    core_->live.insert(id);
  }
  const auto [at, is_new] = core_->waiting.try_emplace(id);
  Item& item = at->second;
  const auto known = core_->folders.find(id);
  if (is_new) {
    item.put_ns = core_->writing == id ? core_->writing_since_ns : SteadyNs();
    item.folder = known == core_->folders.end() ? folder : known->second;
  }
  item.incident = std::move(incident);
  if (core_->waiting.size() > core_->options.most_waiting) core_->DropOldest();
  core_->wake.NotifyAll();
}

std::vector<ReportQueue::Result> ReportQueue::DrainResults() {
  const MutexLock lock(core_->mutex);
  return std::exchange(core_->written, {});
}

std::string ReportQueue::FindProblem(const std::string& incident, int64_t patience_ns) const {
  const MutexLock lock(core_->mutex);
  const auto at = core_->waiting.find(incident);
  const bool waits = at != core_->waiting.end();
  if (!waits && core_->writing != incident) return "";
  const int64_t since_ns = waits ? at->second.put_ns : core_->writing_since_ns;
  if (SteadyNs() - since_ns < patience_ns) return "";
  const std::string problem = waits ? at->second.problem : "";
  return absl::StrCat("not written yet: ", problem.empty() ? "the disk does not respond" : problem);
}

ReportQueue::Counts ReportQueue::counts() const {
  const MutexLock lock(core_->mutex);
  Counts counts = core_->counts;
  counts.waiting = core_->Unwritten();
  return counts;
}

void ReportQueue::Finish(SteadyTime deadline) {
  {
    const MutexLock lock(core_->mutex);
    core_->finishing = true;
    core_->wake.NotifyAll();
  }
  const bool has_written = writer_.Finish(deadline);
  const bool has_synced = syncer_.Finish(deadline);
  const MutexLock lock(core_->mutex);
  core_->abandoned = !has_written || !has_synced;
  if (!has_written) core_->RecordUnwritten();
}

void ReportQueue::Core::RecordUnwritten() {
  const size_t open = Unwritten();
  const char* const problem = "the disk does not respond";
  const bool newer_waits = waiting.count(writing) != 0;
  if (!writing.empty() && !newer_waits) RecordLoss(writing_job, writing, "", problem);
  for (const auto& [id, item] : waiting) {
    RecordLoss(ReadJobKey(item.incident), id, item.folder, problem);
  }
  if (open == 0) return;
  spdlog::error("cannot write {}: {} does not respond; check its disk",
                open == 1 ? "1 report" : absl::StrCat(open, " reports"), options.report_dir);
}

}  // namespace rollcall
