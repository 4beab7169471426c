// SPDX-License-Identifier: Apache-2.0
// The threads of the keeper of the history: one writes, one reads, one answers questions over all
// of it.
#include "daemon/history/history_keeper_core.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/history/history_write.h"
#include "daemon/history/postgres_database.h"
#include "daemon/history/sqlite_history.h"
#include "daemon/model/incident_id.h"

namespace rollcall {
namespace {

constexpr int64_t kTrimEveryNs = 3'600'000'000'000;
constexpr size_t kMostHeld = 1000;  // alerts, receipts and lists of hosts of one job
// A daemon continues from the spool if the database has not answered by then.
constexpr std::chrono::seconds kDatabasePatience{8};
// The spool is no archive: only what a restarted daemon needs, and the newest incidents.
constexpr HistoryLimits kSpoolLimits = {14 * 86400 * kSecond, int64_t{256} << 20};

}  // namespace

std::string KnownAs(const PostgresOptions& database) {
  const auto shown = PostgresUrlInPublic(database.url);
  return absl::StrCat(shown.ok() ? *shown : "", " ", database.daemon);
}

// The writing thread calls this without the mutex.
absl::Status HistoryKeeper::Core::Open() { return forwarder == nullptr ? OpenFile() : OpenSpool(); }

absl::Status HistoryKeeper::Core::OpenFile() {
  auto opened = SqliteHistory::Open(options.path, options.limits);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<History> writing = *std::move(opened);
  std::shared_ptr<History> reading = writing, of_questions = writing;
  if (!options.path.empty()) {
    auto second = SqliteHistory::OpenToRead(options.path);
    if (!second.ok()) return second.status();
    auto third = SqliteHistory::OpenToRead(options.path);
    if (!third.ok()) return third.status();
    reading = *std::move(second);
    of_questions = *std::move(third);
  }
  const absl::Status status = Restore(*writing);
  if (!status.ok()) return status;
  history = writing;
  const MutexLock lock(mutex);
  to_read = std::move(reading);
  for_questions = std::move(of_questions);
  return absl::OkStatus();
}

// What the daemon continues from comes from the database, which the spool's writes have reached by
// then; from the spool if the database is away and has had all of it once; else from the database,
// later.
absl::Status HistoryKeeper::Core::OpenSpool() {
  auto opened = HistorySpool::Open(options.path, kSpoolLimits, {});
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<HistorySpool> writing = *std::move(opened);
  auto reading = SqliteHistory::OpenToRead(options.path);
  if (!reading.ok()) return reading.status();
  auto of_questions = SqliteHistory::OpenToRead(options.path);
  if (!of_questions.ok()) return of_questions.status();
  const absl::StatusOr<std::string> known = writing->KnownDatabase();
  if (!known.ok()) return known.status();
  bool must_load = false;
  {
    const MutexLock lock(mutex);
    must_load = !has_loaded;
  }
  forwarder->SetSpool(writing, must_load);
  if (must_load) {
    const bool is_known = *known == KnownAs(options.database);
    const absl::Status first = forwarder->AwaitFirstAttempt(kDatabasePatience);
    if (absl::IsUnimplemented(first) || (absl::IsFailedPrecondition(first) && !is_known))
      return first;
    const auto deadline = std::chrono::steady_clock::now() + kDatabasePatience;
    MutexLock lock(mutex);
    while (first.ok() && !has_loaded && wake_caller.WaitUntil(mutex, deadline)) {
    }
    if (!has_loaded && is_known) {
      lock.Unlock();
      forwarder->SetSpool(writing, false);
      const absl::Status status = Restore(*writing);
      if (!status.ok()) return status;
    }
  }
  history = writing;
  const MutexLock lock(mutex);
  to_read = *std::move(reading);
  for_questions = *std::move(of_questions);
  spool = writing;
  return absl::OkStatus();
}

absl::Status HistoryKeeper::Core::Restore(const History& from) {
  const absl::StatusOr<std::map<JobId, int>> known = from.LastNumbers();
  if (!known.ok()) return known.status();
  absl::StatusOr<Continuation> loaded = from.Load();
  if (!loaded.ok()) return loaded.status();
  AddNumbers(*known);
  const MutexLock lock(mutex);
  if (!std::exchange(has_loaded, true)) continuation = *std::move(loaded);
  return absl::OkStatus();
}

void HistoryKeeper::Core::AddNumbers(const std::map<JobId, int>& known) {
  const MutexLock lock(mutex);
  for (const auto& [job, number] : known) numbers[job] = std::max(numbers[job], number);
}

// The writing thread calls this without the mutex.
void HistoryKeeper::Core::Close() {
  history = nullptr;
  const MutexLock lock(mutex);
  to_read = nullptr;
  for_questions = nullptr;
  spool = nullptr;
}

absl::Status HistoryKeeper::Core::SaveNext() {
  Item item;
  {
    const MutexLock lock(mutex);
    const auto first = std::min_element(
        waiting.begin(), waiting.end(),
        [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
    if (first != waiting.end() && (notes.empty() || first->second.order < notes.front().order)) {
      item = first->second;
    }
  }
  if (item.order == 0) return SaveNextNote();
  const absl::Status status = history->Apply(item.write);
  if (!status.ok()) return status;
  const MutexLock lock(mutex);
  const auto at = waiting.find(item.write.incident().id());
  if (at != waiting.end() && at->second.version == item.version) waiting.erase(at);
  return status;
}

absl::Status HistoryKeeper::Core::SaveNextNote() {
  Note note;
  {
    const MutexLock lock(mutex);
    if (notes.empty()) return absl::OkStatus();
    note = notes.front();
  }
  const absl::Status status =
      note.write.has_value() ? history->Apply(*note.write) : absl::OkStatus();
  if (!status.ok()) return status;
  {
    const MutexLock lock(mutex);
    // Others may have dropped it meanwhile.
    if (!notes.empty() && notes.front().order == note.order) notes.pop_front();
  }
  if (note.written) note.written();
  return status;
}

// For the moment in which the keeper gets a write.
void HistoryKeeper::Core::AddFence(const JobId& job, v1::HistoryWrite* write) const {
  if (options.token_of && !job.job.empty()) SetFence(job, options.token_of(job), write);
}

void HistoryKeeper::Core::Put(std::optional<v1::HistoryWrite> write,
                              std::function<void()> written) {
  const JobId job = write.has_value() ? JobOf(*write) : JobId();
  const MutexLock lock(mutex);
  if (finishing) return;
  Note note;
  note.write = std::move(write);
  note.written = std::move(written);
  if (job.job.empty() || !IsHeld(job)) {
    if (note.write.has_value()) AddFence(job, &*note.write);
    return Append(std::move(note));
  }
  std::deque<Note>& waits = held[job].notes;
  if (waits.size() >= kMostHeld) waits.pop_front();
  waits.push_back(std::move(note));
}

void HistoryKeeper::Core::Append(Note note) {
  if (notes.size() >= options.most_notes) {
    if (!is_full) {
      spdlog::error(
          "dropped the oldest of {} unsaved alerts and hosts: a restarted daemon may "
          "send an alert again; check the disk of {}",
          notes.size(), options.path);
    }
    is_full = true;
    notes.pop_front();
    ++counts.lost;
  }
  note.order = next_order++;
  notes.push_back(std::move(note));
  wake_writer.NotifyAll();
}

void HistoryKeeper::Core::Keep(v1::Incident incident) {
  Item& item = waiting[incident.id()];
  item.write = WriteOfIncident(std::move(incident));
  AddFence(JobOf(item.write), &item.write);
  item.version = next_order++;
  if (item.order == 0) item.order = item.version;
  if (waiting.size() > options.most_waiting) DropOldest();
  wake_writer.NotifyAll();
}

bool HistoryKeeper::Core::HasWritten(uint64_t order) const {
  const MutexLock lock(mutex);
  const bool has_notes = notes.empty() || notes.front().order >= order;
  return has_notes && std::all_of(waiting.begin(), waiting.end(), [order](const auto& entry) {
           return entry.second.order >= order;
         });
}

absl::Status HistoryKeeper::Core::TrimIfDue() {
  const int64_t now_ns = SteadyNs();
  if (now_ns - trimmed_ns < kTrimEveryNs) return absl::OkStatus();
  trimmed_ns = now_ns;
  return history->Trim(WallNs(now_ns));
}

void HistoryKeeper::Core::Write() {
  MutexLock lock(mutex);
  while (true) {
    if (finishing && (!HasUnsaved() || (has_tried && !problem.ok()))) return;
    const int64_t wait_ns = next_try_ns - SteadyNs();
    if (!finishing && HasWork() && wait_ns > 0) {
      wake_writer.WaitFor(mutex, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    if (!finishing && !HasWork()) {
      // Wakes up in time to delete old incidents.
      wake_writer.WaitFor(mutex, std::chrono::nanoseconds(kTrimEveryNs));
    }
    const bool must_rename = std::exchange(is_damaged, false);
    lock.Unlock();
    if (must_rename) {
      Close();
      SqliteHistory::RenameDamaged(options.path);
    }
    if (history != nullptr && !history->IsInPlace()) Close();
    const bool was_open = history != nullptr;
    absl::Status status = was_open ? absl::OkStatus() : Open();
    if (status.ok()) status = SaveNext();
    if (forwarder != nullptr) forwarder->Wake();
    if (status.ok()) status = TrimIfDue();
    if (absl::IsDataLoss(status)) {
      Close();
      SqliteHistory::RenameDamaged(options.path);
    }
    lock.Lock();
    if (notes.empty()) is_full = false;
    if (!was_open && history != nullptr && has_tried) is_recreated = true;
    RecordAttempt(status);
  }
}

void HistoryKeeper::Core::RecordAttempt(const absl::Status& status) {
  has_tried = true;
  problem = status;
  wake_caller.NotifyAll();
  if (status.ok()) {
    failures = 0;
    next_try_ns = 0;
    is_logged = false;
    return;
  }
  ++counts.failed;
  if (!is_logged) {
    spdlog::error("cannot write the history {}: {}{}", options.path, std::string(status.message()),
                  finishing ? "" : "; trying again later");
  }
  is_logged = true;
  // Open() has renamed the damaged file, so the next attempt can begin a new one at once.
  if (++failures == 1 && absl::IsDataLoss(status)) {
    problem = absl::OkStatus();
    return;
  }
  next_try_ns = SteadyNs() + options.retry.PauseNs(failures);
}

// The reading thread calls this without the mutex.
void HistoryKeeper::Core::Read(ReadTask* task) {
  MutexLock lock(mutex);
  const std::shared_ptr<const History> from = to_read;
  if (task->is_dropped || from == nullptr) return;
  lock.Unlock();
  RunRead(task->run, from, HistoryForwarder::Use::kLists);
  lock.Lock();
  task->is_done = true;
  wake_caller.NotifyAll();
}

// The thread of the questions calls this without the mutex.
QuestionDesk::Answer HistoryKeeper::Core::Count(const v1::CountIncidentsRequest& request) {
  std::shared_ptr<const History> from;
  {
    const MutexLock lock(mutex);
    from = for_questions;
  }
  if (from == nullptr) return absl::UnavailableError("the history cannot be read now");
  QuestionDesk::Answer answer;
  RunRead(
      [&](const History& history, const std::string& note) {
        answer = history.Count(request);
        if (answer.ok()) answer->set_note(note);
        if (absl::IsDataLoss(answer.status())) MarkDamaged(history);
        return answer.status();
      },
      from, HistoryForwarder::Use::kQuestions);
  return answer;
}

// The threads that read call this without the mutex.
void HistoryKeeper::Core::RunRead(const ReadTask::Run& run,
                                  const std::shared_ptr<const History>& from,
                                  HistoryForwarder::Use use) {
  if (forwarder == nullptr) {
    (void)run(*from, "");
    return;
  }
  const char* why = " is away";
  const std::shared_ptr<const History> database = forwarder->reader(use);
  if (database != nullptr) {
    const absl::Status status = run(*database, "");
    if (!absl::IsUnavailable(status)) return;
    why = " did not answer in time";
    if (!database->IsInPlace()) forwarder->DropReader(database.get());
  }
  (void)run(*from,
            absl::StrCat("only incidents of this daemon: the database ", forwarder->name(), why));
}

// The incidents that the spool has in a newer state than the database.
std::vector<v1::Incident> HistoryKeeper::Core::Unsettled(const History& from) const {
  std::shared_ptr<HistorySpool> waits;
  {
    const MutexLock lock(mutex);
    if (IsOfFile(from)) return {};
    waits = spool;
  }
  if (waits == nullptr || waits->waiting().count == 0) return {};
  auto incidents = waits->WaitingIncidents();
  return incidents.ok() ? *std::move(incidents) : std::vector<v1::Incident>();
}

// For the threads that read: the writing thread may not have read the damaged part.
void HistoryKeeper::Core::MarkDamaged(const History& read) {
  const MutexLock lock(mutex);
  if (!IsOfFile(read)) return;  // the writing thread has already renamed that file
  is_damaged = true;
  wake_writer.NotifyAll();
}

void HistoryKeeper::Core::DropOldest() {
  const auto oldest =
      std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
        return std::make_pair(a.second.write.incident().has_confirmed_at(), a.second.order) <
               std::make_pair(b.second.write.incident().has_confirmed_at(), b.second.order);
      });
  if (oldest->second.write.incident().has_confirmed_at()) {
    spdlog::error("dropped incident {} from the history: {} others wait; check the disk of {}",
                  oldest->first, waiting.size() - 1, options.path);
  }
  waiting.erase(oldest);
  ++counts.lost;
}

}  // namespace rollcall
