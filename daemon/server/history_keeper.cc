// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/history_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "daemon/model/incident_id.h"
#include "daemon/server/history_forwarder.h"
#include "daemon/server/incident_list.h"
#include "daemon/store/history_spool.h"
#include "daemon/store/postgres_database.h"
#include "daemon/store/sqlite_history.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kTrimEveryNs = 3'600'000'000'000;
constexpr std::chrono::seconds kLastWait{1};
constexpr auto kReadPatience = std::chrono::seconds(2);
// A busy disk takes its time to make a new file. A daemon that may start without the file starts soon.
constexpr auto kStartPatience = std::chrono::seconds(30);
constexpr auto kOptionalPatience = std::chrono::seconds(5);
constexpr size_t kMostReads = 64;  // waiting for the reading thread
constexpr size_t kMostHeld = 1000;  // alerts, receipts and lists of hosts of one job
constexpr size_t kMostHeldIncidents = 20;  // of one job
// A daemon continues from the spool if the database has not answered by then.
constexpr std::chrono::seconds kDatabasePatience{8};
constexpr std::chrono::seconds kLastBringing{2};
constexpr int64_t kTryDatabaseWithin = 4'000'000'000;
// The spool is no archive: only what a restarted daemon needs, and the newest incidents.
constexpr HistoryLimits kSpoolLimits = {int64_t{14} * 86400 * 1'000'000'000, int64_t{256} << 20};

// Of the job that a write is about.
struct Fence {
  JobId job;
  int64_t token = 0;
};

struct Item {
  v1::Incident incident;
  std::optional<Fence> fence;
  uint64_t order = 0;    // among all writes
  uint64_t version = 0;  // grows with each state, to recognize a newer one
};

// A write of anything but an incident.
struct Note {
  uint64_t order = 0;
  std::function<absl::Status(History*)> write;
  std::function<void()> written;  // may be empty
  std::optional<Fence> fence;
};

// Writes about a job that another daemon may have.
struct Held {
  std::map<std::string, v1::Incident> incidents;  // newest states
  std::deque<Note> notes;
};

// A read of the history, for the reading thread. The caller may have stopped waiting for it.
struct ReadTask {
  // `note`: what the answer lacks; "": nothing. Runs again, with the spool, if a database fails.
  std::function<absl::Status(const History&, const std::string& note)> run;
  bool is_done = false;
  bool is_dropped = false;
};

// The database and the daemon, as the spool remembers them.
std::string KnownAs(const PostgresOptions& database) {
  const auto shown = PostgresUrlInPublic(database.url);
  return absl::StrCat(shown.ok() ? *shown : "", " ", database.daemon);
}

}  // namespace

// Shared with the threads, which may outlive the keeper.
struct HistoryKeeper::Core {
  explicit Core(HistoryKeeperOptions given)
      : options(std::move(given)), pause_ns(options.first_pause_ns) {}

  void Write();
  void Read();
  absl::Status Open();
  absl::Status OpenFile();
  absl::Status OpenSpool();
  absl::Status Restore(const History& from);
  void AddNumbers(const std::map<JobId, int>& known);
  void Close();
  void RunTask(ReadTask* task, const std::shared_ptr<const History>& from);
  std::vector<v1::Incident> Unsettled(const History& from) const;
  absl::Status SaveNext();
  absl::Status SaveNextNote();
  void Put(std::function<absl::Status(History*)> write, std::function<void()> written,
           const JobId& job = {});
  void Append(Note note);
  void Keep(v1::Incident incident);
  std::optional<Fence> FenceOf(const JobId& job) const;
  // Writes about a job come in order: none overtakes those that are held.
  bool IsHeld(const JobId& job) const {
    return held.count(job) > 0 || (options.is_unproven && options.is_unproven(job));
  }
  bool HasWritten(uint64_t order) const;
  absl::Status WriteFenced(const std::optional<Fence>& fence, const std::function<absl::Status()>& write);
  absl::Status TrimIfDue();
  void RecordAttempt(const absl::Status& status);
  bool HasUnsaved() const { return !waiting.empty() || !notes.empty(); }
  bool HasWork() const { return HasUnsaved() || history == nullptr || is_damaged; }
  void MarkDamaged(const History& read);
  void DropOldest();

  const HistoryKeeperOptions options;
  std::shared_ptr<History> history;  // only for the writing thread; null: the file is unusable now
  std::unique_ptr<HistoryForwarder> forwarder;  // set before the threads start; null: no database
  int64_t trimmed_ns = 0;            // only for the writing thread

  mutable std::mutex mutex;  // guards all below
  std::condition_variable wake_writer, wake_reader, wake_caller;
  std::shared_ptr<const History> to_read;
  std::shared_ptr<HistorySpool> spool;  // null: no database, or no file
  std::map<std::string, Item> waiting;  // newest unsaved states, by incident
  std::deque<Note> notes;
  std::map<JobId, Held> held;
  std::optional<Continuation> continuation;
  bool has_loaded = false;       // the first file was opened
  std::map<JobId, int> numbers;  // highest incident number, by job
  std::deque<std::shared_ptr<ReadTask>> reads;
  uint64_t next_order = 1;
  int64_t next_try_ns = 0;
  int64_t pause_ns;
  Counts counts;
  absl::Status problem;     // of the last attempt
  bool has_tried = false;   // at least one attempt to open the file has ended
  bool is_recreated = false;  // a new file was created since ConsumeRecreated()
  bool is_full = false;     // dropped a note since all were saved
  bool is_logged = false;        // that the history cannot be written
  bool is_damaged = false;  // the reading thread found the file damaged
  bool finishing = false;
};

// The writing thread calls this without the mutex.
absl::Status HistoryKeeper::Core::Open() { return forwarder == nullptr ? OpenFile() : OpenSpool(); }

absl::Status HistoryKeeper::Core::OpenFile() {
  auto opened = SqliteHistory::Open(options.path, options.limits);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<History> writing = *std::move(opened);
  std::shared_ptr<History> reading = writing;
  if (!options.path.empty()) {
    auto second = SqliteHistory::OpenToRead(options.path);
    if (!second.ok()) return second.status();
    reading = *std::move(second);
  }
  const absl::Status status = Restore(*writing);
  if (!status.ok()) return status;
  history = writing;
  const std::lock_guard<std::mutex> lock(mutex);
  to_read = std::move(reading);
  return absl::OkStatus();
}

// What the daemon continues from comes from the database, which the spool's writes have reached by then;
// from the spool if the database is away and has had all of it once; else from the database, later.
absl::Status HistoryKeeper::Core::OpenSpool() {
  auto opened = HistorySpool::Open(options.path, kSpoolLimits, {});
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<HistorySpool> writing = *std::move(opened);
  auto reading = SqliteHistory::OpenToRead(options.path);
  if (!reading.ok()) return reading.status();
  const absl::StatusOr<std::string> known = writing->KnownDatabase();
  if (!known.ok()) return known.status();
  bool must_load = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    must_load = !has_loaded;
  }
  forwarder->SetSpool(writing, must_load);
  if (must_load) {
    const bool is_known = *known == KnownAs(options.database);
    const absl::Status first = forwarder->AwaitFirstAttempt(kDatabasePatience);
    if (absl::IsUnimplemented(first) || (absl::IsFailedPrecondition(first) && !is_known)) return first;
    std::unique_lock<std::mutex> lock(mutex);
    if (first.ok()) wake_caller.wait_for(lock, kDatabasePatience, [this] { return has_loaded; });
    if (!has_loaded && is_known) {
      lock.unlock();
      forwarder->SetSpool(writing, false);
      const absl::Status status = Restore(*writing);
      if (!status.ok()) return status;
    }
  }
  history = writing;
  const std::lock_guard<std::mutex> lock(mutex);
  to_read = *std::move(reading);
  spool = writing;
  return absl::OkStatus();
}

absl::Status HistoryKeeper::Core::Restore(const History& from) {
  const absl::StatusOr<std::map<JobId, int>> known = from.LastNumbers();
  if (!known.ok()) return known.status();
  absl::StatusOr<Continuation> loaded = from.Load();
  if (!loaded.ok()) return loaded.status();
  AddNumbers(*known);
  const std::lock_guard<std::mutex> lock(mutex);
  if (!std::exchange(has_loaded, true)) continuation = *std::move(loaded);
  return absl::OkStatus();
}

void HistoryKeeper::Core::AddNumbers(const std::map<JobId, int>& known) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [job, number] : known) numbers[job] = std::max(numbers[job], number);
}

// The writing thread calls this without the mutex.
void HistoryKeeper::Core::Close() {
  history = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  to_read = nullptr;
  spool = nullptr;
}

absl::Status HistoryKeeper::Core::SaveNext() {
  Item item;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto first =
        std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
          return a.second.order < b.second.order;
        });
    if (first != waiting.end() && (notes.empty() || first->second.order < notes.front().order)) {
      item = first->second;
    }
  }
  if (item.order == 0) return SaveNextNote();
  const absl::Status status =
      WriteFenced(item.fence, [&] { return history->Save(item.incident); });
  if (!status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto at = waiting.find(item.incident.id());
  if (at != waiting.end() && at->second.version == item.version) waiting.erase(at);
  return status;
}

absl::Status HistoryKeeper::Core::SaveNextNote() {
  Note note;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (notes.empty()) return absl::OkStatus();
    note = notes.front();
  }
  const absl::Status status = WriteFenced(note.fence, [&] { return note.write(history.get()); });
  if (!status.ok()) return status;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    // Others may have dropped it meanwhile.
    if (!notes.empty() && notes.front().order == note.order) notes.pop_front();
  }
  if (note.written) note.written();
  return status;
}

// For the moment in which the keeper gets a write.
std::optional<Fence> HistoryKeeper::Core::FenceOf(const JobId& job) const {
  if (!options.token_of || job.job.empty()) return std::nullopt;
  return Fence{job, options.token_of(job)};
}

absl::Status HistoryKeeper::Core::WriteFenced(const std::optional<Fence>& fence,
                                              const std::function<absl::Status()>& write) {
  return fence.has_value() ? history->Fenced(fence->job, fence->token, write) : write();
}

void HistoryKeeper::Core::Put(std::function<absl::Status(History*)> write, std::function<void()> written,
                              const JobId& job) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (finishing) return;
  Note note;
  note.write = std::move(write);
  note.written = std::move(written);
  if (job.job.empty() || !IsHeld(job)) {
    note.fence = FenceOf(job);
    return Append(std::move(note));
  }
  std::deque<Note>& waits = held[job].notes;
  if (waits.size() >= kMostHeld) waits.pop_front();
  waits.push_back(std::move(note));
}

// Requires the mutex.
void HistoryKeeper::Core::Append(Note note) {
  if (notes.size() >= options.most_notes) {
    if (!is_full) {
      spdlog::error("dropped the oldest of {} unsaved alerts and hosts: a restarted daemon may "
                    "send an alert again; check the disk of {}",
                    notes.size(), options.path);
    }
    is_full = true;
    notes.pop_front();
    ++counts.lost;
  }
  note.order = next_order++;
  notes.push_back(std::move(note));
  wake_writer.notify_all();
}

// Requires the mutex.
void HistoryKeeper::Core::Keep(v1::Incident incident) {
  Item& item = waiting[incident.id()];
  item.fence = FenceOf(ReadJobKey(incident));
  item.incident = std::move(incident);
  item.version = next_order++;
  if (item.order == 0) item.order = item.version;
  if (waiting.size() > options.most_waiting) DropOldest();
  wake_writer.notify_all();
}

bool HistoryKeeper::Core::HasWritten(uint64_t order) const {
  const std::lock_guard<std::mutex> lock(mutex);
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
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    if (finishing && (!HasUnsaved() || (has_tried && !problem.ok()))) return;
    const int64_t wait_ns = next_try_ns - SteadyNs();
    if (!finishing && HasWork() && wait_ns > 0) {
      wake_writer.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    if (!finishing && !HasWork()) {
      // Wakes up in time to delete old incidents.
      wake_writer.wait_for(lock, std::chrono::nanoseconds(kTrimEveryNs));
    }
    const bool must_rename = std::exchange(is_damaged, false);
    lock.unlock();
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
    lock.lock();
    if (notes.empty()) is_full = false;
    if (!was_open && history != nullptr && has_tried) is_recreated = true;
    RecordAttempt(status);
  }
}

// Requires the mutex.
void HistoryKeeper::Core::RecordAttempt(const absl::Status& status) {
  has_tried = true;
  problem = status;
  wake_caller.notify_all();
  if (status.ok()) {
    pause_ns = options.first_pause_ns;
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
  if (absl::IsDataLoss(status) && pause_ns == options.first_pause_ns) {
    pause_ns *= 2;
    problem = absl::OkStatus();
    return;
  }
  next_try_ns = SteadyNs() + pause_ns;
  pause_ns = std::min(pause_ns * 2, options.longest_pause_ns);
}

void HistoryKeeper::Core::Read() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake_reader.wait(lock, [this] { return finishing || !reads.empty(); });
    if (reads.empty()) return;
    const std::shared_ptr<ReadTask> task = reads.front();
    reads.pop_front();
    const std::shared_ptr<const History> from = to_read;
    if (task->is_dropped || from == nullptr) continue;
    lock.unlock();
    RunTask(task.get(), from);
    lock.lock();
    task->is_done = true;
    wake_caller.notify_all();
  }
}

// The reading thread calls this without the mutex.
void HistoryKeeper::Core::RunTask(ReadTask* task, const std::shared_ptr<const History>& from) {
  if (forwarder == nullptr) {
    (void)task->run(*from, "");
    return;
  }
  const char* why = " is away";
  const std::shared_ptr<const History> database = forwarder->reader();
  if (database != nullptr) {
    const absl::Status status = task->run(*database, "");
    if (!absl::IsUnavailable(status)) return;
    why = " did not answer in time";
    if (!database->IsInPlace()) forwarder->DropReader(database.get());
  }
  (void)task->run(*from, absl::StrCat("only incidents of this daemon: the database ", forwarder->name(), why));
}

// The incidents that the spool has in a newer state than the database.
std::vector<v1::Incident> HistoryKeeper::Core::Unsettled(const History& from) const {
  std::shared_ptr<HistorySpool> waits;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (&from == to_read.get()) return {};
    waits = spool;
  }
  if (waits == nullptr || waits->waiting().count == 0) return {};
  auto incidents = waits->WaitingIncidents();
  return incidents.ok() ? *std::move(incidents) : std::vector<v1::Incident>();
}

// For the reading thread: the writing thread may not have read the damaged part.
void HistoryKeeper::Core::MarkDamaged(const History& read) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (to_read.get() != &read) return;  // the writing thread has already renamed that file
  is_damaged = true;
  wake_writer.notify_all();
}

void HistoryKeeper::Core::DropOldest() {
  const auto oldest =
      std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
        return std::make_pair(a.second.incident.has_confirmed_at(), a.second.order) <
               std::make_pair(b.second.incident.has_confirmed_at(), b.second.order);
      });
  if (oldest->second.incident.has_confirmed_at()) {
    spdlog::error("dropped incident {} from the history: {} others wait; check the disk of {}",
                  oldest->first, waiting.size() - 1, options.path);
  }
  waiting.erase(oldest);
  ++counts.lost;
}

HistoryKeeper::HistoryKeeper(HistoryKeeperOptions options)
    : core_(std::make_shared<Core>(std::move(options))) {}

void HistoryKeeper::StartForwarder() {
  HistoryForwarderOptions options;
  options.database = core_->options.database;
  options.known_as = KnownAs(options.database);
  options.limits = core_->options.limits;
  options.first_pause_ns = core_->options.first_pause_ns;
  options.longest_pause_ns = std::min(core_->options.longest_pause_ns / 2, kTryDatabaseWithin);
  // The core owns the forwarder, whose thread may outlive both.
  const std::weak_ptr<Core> weak = core_;
  core_->forwarder = std::make_unique<HistoryForwarder>(
      options,
      [weak](Continuation loaded) {
        const std::shared_ptr<Core> core = weak.lock();
        if (core == nullptr) return;
        const std::lock_guard<std::mutex> lock(core->mutex);
        if (!std::exchange(core->has_loaded, true)) core->continuation = std::move(loaded);
        core->wake_caller.notify_all();
      },
      [weak](const std::map<JobId, int>& known) {
        if (const std::shared_ptr<Core> core = weak.lock()) core->AddNumbers(known);
      });
}

HistoryKeeper::~HistoryKeeper() { Finish(std::chrono::steady_clock::now() + kLastWait); }

absl::Status HistoryKeeper::Start() {
  if (!core_->options.database.url.empty()) StartForwarder();
  writer_.Start([core = core_] { core->Write(); });
  reader_.Start([core = core_] { core->Read(); });
  absl::Status problem;
  {
    std::unique_lock<std::mutex> lock(core_->mutex);
    const bool answered = core_->wake_caller.wait_for(
        lock, core_->options.is_optional ? kOptionalPatience : kStartPatience,
        [this] { return core_->has_tried; });
    problem = answered ? core_->problem
                       : absl::UnavailableError(absl::StrCat(
                             "the history ", core_->options.path, " cannot be used: its disk does "
                             "not respond\n  another one?  --history=FILE"));
  }
  if (problem.ok() || core_->options.is_optional) return absl::OkStatus();
  Finish(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  return problem;
}

int HistoryKeeper::LastNumber(const JobId& job) const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const auto at = core_->numbers.find(job);
  return at == core_->numbers.end() ? 0 : at->second;
}

void HistoryKeeper::RaiseNumber(const JobId& job, int number) {
  core_->AddNumbers({{job, number}});
}

void HistoryKeeper::Save(v1::Incident incident) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (core_->finishing) return;
  const JobId job = ReadJobKey(incident);
  int& number = core_->numbers[job];
  number = std::max(number, IncidentNumber(incident));
  if (!core_->IsHeld(job)) return core_->Keep(std::move(incident));
  std::map<std::string, v1::Incident>& held = core_->held[job].incidents;
  std::string id = incident.id();
  if (held.size() >= kMostHeldIncidents && held.count(id) == 0) return;
  held[std::move(id)] = std::move(incident);
}

void HistoryKeeper::ReleaseHeld(const JobId& job) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  auto held = core_->held.extract(job);
  if (held.empty() || core_->finishing) return;
  // An alert is about an incident, and comes after it.
  for (auto& [id, incident] : held.mapped().incidents) core_->Keep(std::move(incident));
  for (Note& note : held.mapped().notes) {
    note.fence = core_->FenceOf(job);
    core_->Append(std::move(note));
  }
}

void HistoryKeeper::DropHeld(const JobId& job) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  core_->held.erase(job);
}

std::function<bool()> HistoryKeeper::Barrier() const {
  struct Marks {
    uint64_t order = 0;
    std::shared_ptr<HistorySpool> spool;  // nullptr: the writing thread still has some of it
    int64_t place = 0;
  };
  const auto marks = std::make_shared<Marks>();
  const std::lock_guard<std::mutex> lock(core_->mutex);
  marks->order = core_->next_order;
  return [core = core_, marks] {
    if (!core->HasWritten(marks->order)) return false;
    std::shared_ptr<HistorySpool> spool;
    {
      const std::lock_guard<std::mutex> lock(core->mutex);
      spool = core->spool;
    }
    if (spool == nullptr) return core->forwarder == nullptr;
    if (marks->spool == nullptr) {
      marks->spool = spool;
      marks->place = spool->NewestPlace();
    }
    // If somebody has removed the file, what waited there is lost.
    return spool != marks->spool || spool->HasBrought(marks->place);
  };
}

// Shares the core, because alerts may be delivered after the keeper has ended.
class HistoryKeeper::Outbox : public AlertOutbox {
 public:
  explicit Outbox(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  void Save(AlertRow alert, std::function<void()> saved) override {
    const JobId job = JobOfIncidentId(alert.incident);
    core_->Put([alert = std::move(alert)](History* history) { return history->SaveAlert(alert); },
               std::move(saved), job);
  }
  void Mark(const std::string& incident, int32_t sequence, const std::string& receiver) override {
    core_->Put([=](History* history) { return history->MarkAlert(incident, sequence, receiver); },
               nullptr, JobOfIncidentId(incident));
  }

 private:
  const std::shared_ptr<Core> core_;
};

std::shared_ptr<AlertOutbox> HistoryKeeper::outbox() const {
  return std::make_shared<Outbox>(core_);
}

void HistoryKeeper::SaveHosts(const JobKey& job, std::vector<std::string> hosts, int64_t seen_ns) {
  core_->Put([job, hosts = std::move(hosts), seen_ns](
                 History* history) { return history->SaveHosts(job, hosts, seen_ns); },
             nullptr, job);
}

void HistoryKeeper::ForgetHosts(const JobKey& job) {
  core_->Put([job](History* history) { return history->ForgetHosts(job); }, nullptr, job);
}

void HistoryKeeper::SaveAttempts(std::map<JobKey, AttemptFacts> attempts, int64_t seen_ns) {
  // A write with a token is about one job.
  std::map<JobId, std::map<JobKey, AttemptFacts>> parts;
  for (auto& [job, facts] : attempts) {
    parts[core_->options.token_of ? JobId(job) : JobId()][job] = std::move(facts);
  }
  for (auto& [job, part] : parts) {
    core_->Put([part = std::move(part), seen_ns](
                   History* history) { return history->SaveAttempts(part, seen_ns); },
               nullptr, job);
  }
}

void HistoryKeeper::SaveAction(ActionRow action) {
  core_->Put([action = std::move(action)](
                 History* history) { return history->SaveAction(action); },
             nullptr);
}

void HistoryKeeper::SaveSilence(v1::Silence silence) {
  core_->Put([silence = std::move(silence)](
                 History* history) { return history->SaveSilence(silence); },
             nullptr);
}

void HistoryKeeper::ForgetAttempt(const JobKey& job) {
  core_->Put([job](History* history) { return history->ForgetAttempt(job); }, nullptr, job);
}

bool HistoryKeeper::AwaitSaved(int64_t patience_ns) {
  // The keeper writes in order.
  const auto saved = std::make_shared<absl::Notification>();
  core_->Put([](History*) { return absl::OkStatus(); }, [saved] { saved->Notify(); });
  return saved->WaitForNotificationWithTimeout(absl::Nanoseconds(patience_ns));
}

std::optional<Continuation> HistoryKeeper::ConsumeContinuation() {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return std::exchange(core_->continuation, std::nullopt);
}

bool HistoryKeeper::ConsumeRecreated() {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return std::exchange(core_->is_recreated, false);
}

namespace {

// Runs `run` on the reading thread. Returns false if it has not ended in time; it may still run
// later.
template <typename Core>
bool RunRead(Core* core,
             std::function<absl::Status(const History&, const std::string& note)> run) {
  const auto task = std::make_shared<ReadTask>();
  task->run = std::move(run);
  std::unique_lock<std::mutex> lock(core->mutex);
  if (core->to_read == nullptr || core->finishing || core->reads.size() >= kMostReads) {
    return false;
  }
  core->reads.push_back(task);
  core->wake_reader.notify_all();
  core->wake_caller.wait_for(lock, kReadPatience, [&] { return task->is_done; });
  task->is_dropped = !task->is_done;
  return task->is_done;
}

}  // namespace

namespace {

// The request's page of the history and of these incidents, whose state is newer than the history's.
absl::StatusOr<v1::ListIncidentsResponse> ListWith(const History& history,
                                                   const v1::ListIncidentsRequest& request,
                                                   const std::map<std::string, v1::Incident>& newer) {
  std::vector<std::string> ids;
  std::vector<v1::Incident> in_memory;
  for (const auto& [id, incident] : newer) {
    ids.push_back(id);
    if (IsSelected(incident, request)) in_memory.push_back(incident);
  }
  const Window window = WindowFor(request, static_cast<int64_t>(in_memory.size()));
  auto listed = history.ListWithout(ids, request, window.offset, window.limit);
  if (!listed.ok()) return listed.status();
  return Merge(request, std::move(in_memory), window, *std::move(listed));
}

}  // namespace

absl::StatusOr<v1::ListIncidentsResponse> HistoryKeeper::List(
    const v1::ListIncidentsRequest& request, const std::vector<v1::Incident>& live) const {
  std::map<std::string, v1::Incident> newer;  // than the history's, by id
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    for (const auto& [id, item] : core_->waiting) newer[id] = item.incident;
  }
  for (const v1::Incident& incident : live) newer[incident.id()] = incident;
  using Answer = absl::StatusOr<v1::ListIncidentsResponse>;
  // Shared, because the read may end after this function.
  const auto answer =
      std::make_shared<Answer>(absl::UnavailableError("the history does not respond"));
  // Has no share of the core: the core owns the task.
  const bool came = RunRead(core_.get(), [core = core_.get(), answer, request, newer](
                                             const History& history, const std::string& note) {
    std::map<std::string, v1::Incident> all = newer;
    for (v1::Incident& incident : core->Unsettled(history)) {
      all.try_emplace(incident.id(), std::move(incident));
    }
    *answer = ListWith(history, request, all);
    if (answer->ok()) (*answer)->set_note(note);
    if (absl::IsDataLoss(answer->status())) core->MarkDamaged(history);
    return answer->status();
  });
  if (!came) return absl::UnavailableError("the history does not respond");
  return *answer;
}

absl::StatusOr<v1::ListIncidentsResponse> HistoryKeeper::Groups(
    const v1::ListIncidentsRequest& request, const std::string& without) const {
  const absl::Status silent = absl::UnavailableError("the history does not respond");
  const auto answer = std::make_shared<absl::StatusOr<v1::ListIncidentsResponse>>(silent);
  const bool came = RunRead(core_.get(), [core = core_.get(), answer, request, without](
                                             const History& history, const std::string& note) {
    *answer = history.Groups(request, without);
    if (answer->ok()) (*answer)->set_note(note);
    if (absl::IsDataLoss(answer->status())) core->MarkDamaged(history);
    return answer->status();
  });
  if (!came) return silent;
  return *answer;
}

absl::StatusOr<v1::CountIncidentsResponse> HistoryKeeper::Count(
    const v1::CountIncidentsRequest& request) const {
  const absl::Status silent = absl::UnavailableError("the history does not respond");
  const auto answer = std::make_shared<absl::StatusOr<v1::CountIncidentsResponse>>(silent);
  const bool came = RunRead(core_.get(), [core = core_.get(), answer, request](
                                             const History& history, const std::string& note) {
    *answer = history.Count(request);
    if (answer->ok()) (*answer)->set_note(note);
    if (absl::IsDataLoss(answer->status())) core->MarkDamaged(history);
    return answer->status();
  });
  if (!came) return silent;
  return *answer;
}

absl::StatusOr<std::vector<v1::Silence>> HistoryKeeper::ListSilences() const {
  const absl::Status silent = absl::UnavailableError("the history does not respond");
  const auto answer = std::make_shared<absl::StatusOr<std::vector<v1::Silence>>>(silent);
  const bool came = RunRead(core_.get(), [core = core_.get(), answer](const History& history,
                                                                      const std::string&) {
    *answer = history.ListSilences();
    if (absl::IsDataLoss(answer->status())) core->MarkDamaged(history);
    return answer->status();
  });
  if (!came) return silent;
  return *answer;
}

absl::StatusOr<v1::Incident> HistoryKeeper::Get(const std::string& id) const {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    const auto at = core_->waiting.find(id);
    if (at != core_->waiting.end()) return at->second.incident;
  }
  const absl::Status silent = absl::UnavailableError("the history does not respond");
  const auto answer = std::make_shared<absl::StatusOr<v1::Incident>>(silent);
  const bool came =
      RunRead(core_.get(), [core = core_.get(), answer, id](const History& history,
                                                            const std::string&) {
        for (v1::Incident& incident : core->Unsettled(history)) {
          if (incident.id() != id) continue;
          *answer = std::move(incident);
          return absl::OkStatus();
        }
        *answer = history.Get(id);
        if (absl::IsDataLoss(answer->status())) core->MarkDamaged(history);
        return answer->status();
      });
  if (!came) return silent;
  return *answer;
}

HistoryKeeper::Counts HistoryKeeper::counts() const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  Counts counts = core_->counts;
  counts.waiting = core_->waiting.size() + core_->notes.size();
  if (core_->forwarder == nullptr) return counts;
  const HistoryForwarder::Counts database = core_->forwarder->counts();
  counts.has_database = true;
  counts.is_connected = database.is_connected;
  counts.failed += database.failed;
  counts.lost += database.refused;
  counts.fenced = database.fenced;
  if (core_->spool == nullptr) return counts;
  const HistorySpool::Waiting spooled = core_->spool->waiting();
  counts.spooled = static_cast<uint64_t>(spooled.count);
  counts.spooled_bytes = static_cast<uint64_t>(spooled.bytes);
  counts.lost += static_cast<uint64_t>(spooled.lost);
  return counts;
}

void HistoryKeeper::Finish(SteadyTime deadline) {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    if (core_->finishing) return;
    core_->finishing = true;
    core_->problem = absl::OkStatus();  // one more try
    core_->wake_writer.notify_all();
    core_->wake_reader.notify_all();
  }
  writer_.Join(deadline);
  reader_.Join(deadline);
  if (core_->forwarder != nullptr) {
    core_->forwarder->Finish(
        std::min(deadline, std::chrono::steady_clock::now() + kLastBringing));
    if (const uint64_t left = counts().spooled) {
      spdlog::info("{} writes wait in {} for the history's database", left, core_->options.path);
    }
  }
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const size_t lost = core_->waiting.size();
  core_->counts.lost += lost + core_->notes.size();
  if (lost == 0 && core_->notes.empty()) return;
  spdlog::error("cannot save {} and {} of alerts and hosts in the history {}: {}",
                lost == 1 ? "1 incident" : absl::StrCat(lost, " incidents"),
                core_->notes.size() == 1 ? "1 fact" : absl::StrCat(core_->notes.size(), " facts"),
                core_->options.path,
                core_->problem.ok() ? "its disk does not respond"
                                    : std::string(core_->problem.message()));
}

}  // namespace rollcall
