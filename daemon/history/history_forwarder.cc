// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_forwarder.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "daemon/history/postgres_database.h"
#include "daemon/history/postgres_history.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {
namespace {

constexpr int kAtOnce = 64;
constexpr int64_t kTrimSpoolEveryNs = 3'600'000'000'000;
// A connection that broke while it was idle is noticed by then.
constexpr std::chrono::seconds kLookEvery{5};
constexpr int kShownRefusals = 10;
constexpr size_t kMostReasons = 1000;
// No caller waits for a list for longer than two seconds.
constexpr std::chrono::seconds kReadWithin{4};
// A query over half a year of one job can read many thousand rows from a cold disk.
constexpr int kTimesForQuestions = 4;

}  // namespace

// Shared with the thread, which may outlive the forwarder.
struct HistoryForwarder::Core {
  Core(HistoryForwarderOptions given, Loaded on_loaded, Numbers on_numbers)
      : options(std::move(given)), loaded(std::move(on_loaded)), numbers(std::move(on_numbers)) {
    const auto shown = PostgresUrlInPublic(options.database.url);
    name = shown.ok() ? *shown : "the database";
  }

  void Run();
  absl::Status Connect();
  absl::Status ConnectToRead();
  absl::Status ConnectToRead(Use use);
  absl::Status Step();
  absl::Status BringTogether(const std::vector<HistorySpool::Entry>& entries);
  void NoteFenced(const std::string& why);
  absl::Status Bring(const HistorySpool::Entry& entry);
  absl::Status BringAll(const std::vector<HistorySpool::Entry>& entries, HistorySpool* from);
  absl::Status LoadIfDue(HistorySpool* spool);
  absl::Status TrimIfDue();
  void Note(const absl::Status& status);
  void Disconnect();

  const HistoryForwarderOptions options;
  const Loaded loaded;
  const Numbers numbers;
  std::string name;

  // Only for the thread.
  std::unique_ptr<PostgresHistory> database;
  std::mt19937 chance{std::random_device()()};
  int64_t trimmed_ns = 0;
  bool has_more = false;  // the last step left something
  const HistorySpool* from_before = nullptr;
  bool is_known = false;  // the spool notes that this database has had all of it
  bool is_logged_without_questions = false;
  std::set<std::string> fenced_reasons;  // that were logged; each names its job

  mutable Mutex mutex;
  mutable Condition wake, tried;
  std::shared_ptr<HistorySpool> spool ABSL_GUARDED_BY(mutex);
  bool must_load ABSL_GUARDED_BY(mutex) = false;
  bool has_tried ABSL_GUARDED_BY(mutex) = false;
  absl::Status first ABSL_GUARDED_BY(mutex);  // outcome of the first attempt
  std::array<std::shared_ptr<const History>, 2> reading ABSL_GUARDED_BY(mutex);  // by Use
  Counts counts ABSL_GUARDED_BY(mutex);
  bool is_logged_away ABSL_GUARDED_BY(mutex) = false;
  int64_t away_since_ns ABSL_GUARDED_BY(mutex) = 0;
  int failures ABSL_GUARDED_BY(mutex) = 0;  // in a row
  int64_t next_try_ns ABSL_GUARDED_BY(mutex) = 0;
  bool has_news ABSL_GUARDED_BY(mutex) = false;  // since the last step
  bool finishing ABSL_GUARDED_BY(mutex) = false;
};

// A server that has no room for the connection of queries still takes writes and shows lists.
absl::Status HistoryForwarder::Core::ConnectToRead() {
  const absl::Status status = ConnectToRead(Use::kLists);
  if (!status.ok()) return status;
  const absl::Status of_questions = ConnectToRead(Use::kQuestions);
  if (!of_questions.ok() && !std::exchange(is_logged_without_questions, true)) {
    spdlog::warn("queries over the history count incidents of this daemon only: {}",
                 std::string(of_questions.message()));
  }
  return absl::OkStatus();
}

absl::Status HistoryForwarder::Core::ConnectToRead(Use use) {
  {
    const MutexLock lock(mutex);
    if (reading.at(static_cast<size_t>(use)) != nullptr) return absl::OkStatus();
  }
  PostgresOptions to_read = options.database;
  to_read.times.answer = use == Use::kLists ? std::min(to_read.times.answer, kReadWithin)
                                            : to_read.times.answer * kTimesForQuestions;
  auto opened = PostgresHistory::Open(to_read, options.limits);
  if (!opened.ok()) return opened.status();
  const MutexLock lock(mutex);
  reading.at(static_cast<size_t>(use)) = *std::move(opened);
  return absl::OkStatus();
}

absl::Status HistoryForwarder::Core::Connect() {
  auto writing = PostgresHistory::Open(options.database, options.limits);
  if (!writing.ok()) return writing.status();
  const absl::StatusOr<std::map<JobId, int>> known = (*writing)->LastNumbers();
  if (!known.ok()) return known.status();
  numbers(*known);
  database = *std::move(writing);
  return ConnectToRead();
}

void HistoryForwarder::Core::Disconnect() {
  database = nullptr;
  const MutexLock lock(mutex);
  reading = {};
}

absl::Status ApplyEntry(const HistorySpool::Entry& entry, History* history) {
  v1::HistoryWrite write;
  if (!write.ParseFromString(entry.write)) return absl::InvalidArgumentError("it is unreadable");
  return history->Apply(write);
}

void HistoryForwarder::Core::NoteFenced(const std::string& why) {
  {
    const MutexLock lock(mutex);
    ++counts.fenced;
  }
  if (fenced_reasons.size() >= kMostReasons) fenced_reasons.clear();
  if (!fenced_reasons.insert(why).second) return;
  spdlog::warn("dropping the pending writes of this daemon about a job: {}", why);
}

// Many writes in one transaction, without those that are out of date. kInvalidArgument: the
// database refuses one of them, and has none.
absl::Status HistoryForwarder::Core::BringTogether(
    const std::vector<HistorySpool::Entry>& entries) {
  std::vector<std::string> fenced;
  absl::Status status = database->Begin();
  for (const HistorySpool::Entry& entry : entries) {
    if (!status.ok()) break;
    status = ApplyEntry(entry, database.get());
    if (!absl::IsAborted(status)) continue;
    fenced.emplace_back(status.message());
    status = absl::OkStatus();
  }
  status = database->End(status);
  if (!status.ok()) return status;
  for (const std::string& why : fenced) NoteFenced(why);
  return status;
}

absl::Status HistoryForwarder::Core::Bring(const HistorySpool::Entry& entry) {
  const absl::Status status = ApplyEntry(entry, database.get());
  if (absl::IsAborted(status)) {
    NoteFenced(std::string(status.message()));
    return absl::OkStatus();
  }
  if (!absl::IsInvalidArgument(status)) return status;
  const MutexLock lock(mutex);
  if (++counts.refused <= kShownRefusals) {
    spdlog::error("{} refuses a row of the history, which is lost: {}", name,
                  std::string(status.message()));
  }
  return absl::OkStatus();
}

// What the spool cannot remove now comes again: each write replaces a row by its key.
absl::Status HistoryForwarder::Core::BringAll(const std::vector<HistorySpool::Entry>& entries,
                                              HistorySpool* from) {
  absl::Status status = BringTogether(entries);
  if (absl::IsInvalidArgument(status)) {
    status = absl::OkStatus();
    for (const HistorySpool::Entry& entry : entries) {
      if (status.ok()) status = Bring(entry);
    }
  }
  if (!status.ok()) return status;
  has_more = from->Remove(entries).ok();
  return absl::OkStatus();
}

// Everything of this daemon is in the database now.
absl::Status HistoryForwarder::Core::LoadIfDue(HistorySpool* from) {
  bool must = false;
  {
    const MutexLock lock(mutex);
    must = must_load;
  }
  if (!must) {
    if (is_known) return absl::OkStatus();
    const absl::Status status = from->SetKnownDatabase(options.known_as);
    is_known = status.ok();
    return absl::OkStatus();  // trouble of the spool
  }
  absl::StatusOr<Continuation> continuation = database->Load();
  if (!continuation.ok()) return continuation.status();
  loaded(*std::move(continuation));
  const MutexLock lock(mutex);
  must_load = false;
  return absl::OkStatus();
}

absl::Status HistoryForwarder::Core::TrimIfDue() {
  const int64_t now_ns = SteadyNs();
  if (trimmed_ns != 0 && now_ns - trimmed_ns < kTrimSpoolEveryNs) return absl::OkStatus();
  trimmed_ns = now_ns;
  const absl::Status status = database->Trim(WallNs(now_ns));
  // Another daemon holds the tables, or a reader does: the next hour will do.
  if (!status.ok() && database->IsInPlace()) {
    spdlog::warn("cannot delete old rows of {}: {}", name, std::string(status.message()));
    return absl::OkStatus();
  }
  return status;
}

absl::Status HistoryForwarder::Core::Step() {
  std::shared_ptr<HistorySpool> from;
  {
    const MutexLock lock(mutex);
    if (from_before != spool.get()) is_known = false;
    from_before = spool.get();
    from = spool;
    has_news = false;
  }
  has_more = false;
  if (database == nullptr) {
    const absl::Status status = Connect();
    if (!status.ok()) return status;
  }
  if (from == nullptr) return absl::OkStatus();
  auto entries = from->Next(kAtOnce);
  // The spool's own trouble is that of the keeper.
  if (!entries.ok()) return absl::OkStatus();
  if (!entries->empty()) return BringAll(*entries, from.get());
  absl::Status status = database->Ping();
  if (status.ok()) status = ConnectToRead();
  if (status.ok()) status = LoadIfDue(from.get());
  return status.ok() ? TrimIfDue() : status;
}

void HistoryForwarder::Core::Note(const absl::Status& status) {
  if (!status.ok()) Disconnect();
  const MutexLock lock(mutex);
  if (!std::exchange(has_tried, true)) first = status;
  counts.is_connected = status.ok();
  tried.NotifyAll();
  const int64_t now_ns = SteadyNs();
  if (status.ok()) {
    if (is_logged_away) {
      spdlog::info("the history's database {} is back after {} s; {} writes wait for it", name,
                   (now_ns - away_since_ns) / kSecond,
                   spool == nullptr ? 0 : spool->waiting().count);
    }
    is_logged_away = false;
    failures = 0;
    next_try_ns = 0;
    return;
  }
  ++counts.failed;
  if (!is_logged_away) {
    away_since_ns = now_ns;
    spdlog::error("cannot reach the history's database; keeping its writes on this disk: {}",
                  std::string(status.message()));
  }
  is_logged_away = true;
  next_try_ns =
      now_ns + options.retry.PauseNs(++failures, std::uniform_real_distribution<double>()(chance));
}

void HistoryForwarder::Core::Run() {
  while (true) {
    const absl::Status status = Step();
    Note(status);
    const MutexLock lock(mutex);
    if (finishing && (!status.ok() || !has_more)) break;
    const auto now = std::chrono::steady_clock::now();
    const int64_t wait_ns = next_try_ns - SteadyNs();
    if (wait_ns > 0) {
      const auto next_try = now + std::chrono::nanoseconds(wait_ns);
      while (!finishing && wake.WaitUntil(mutex, next_try)) {
      }
    } else if (!has_more) {
      while (!finishing && !has_news && wake.WaitUntil(mutex, now + kLookEvery)) {
      }
    }
  }
  Disconnect();
}

HistoryForwarder::HistoryForwarder(HistoryForwarderOptions options, Loaded loaded, Numbers numbers)
    : core_(std::make_shared<Core>(std::move(options), std::move(loaded), std::move(numbers))) {
  thread_.Start();
  thread_.Post([core = core_] { core->Run(); });
}

HistoryForwarder::~HistoryForwarder() { Finish(std::chrono::steady_clock::now()); }

std::string HistoryForwarder::name() const { return core_->name; }

void HistoryForwarder::SetSpool(std::shared_ptr<HistorySpool> spool, bool must_load) {
  const MutexLock lock(core_->mutex);
  core_->spool = std::move(spool);
  core_->must_load = must_load;
  core_->has_news = true;
  core_->wake.NotifyAll();
}

void HistoryForwarder::Wake() {
  const MutexLock lock(core_->mutex);
  core_->has_news = true;
  core_->wake.NotifyAll();
}

absl::Status HistoryForwarder::AwaitFirstAttempt(std::chrono::nanoseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(core_->mutex);
  while (!core_->has_tried && core_->tried.WaitUntil(core_->mutex, deadline)) {
  }
  if (!core_->has_tried) {
    return absl::UnavailableError(absl::StrCat(core_->name, " does not answer"));
  }
  return core_->first;
}

std::shared_ptr<const History> HistoryForwarder::reader(Use use) const {
  const MutexLock lock(core_->mutex);
  return core_->reading.at(static_cast<size_t>(use));
}

void HistoryForwarder::DropReader(const History* failed) {
  const MutexLock lock(core_->mutex);
  for (std::shared_ptr<const History>& reading : core_->reading) {
    if (reading.get() == failed) reading = nullptr;
  }
}

HistoryForwarder::Counts HistoryForwarder::counts() const {
  const MutexLock lock(core_->mutex);
  return core_->counts;
}

void HistoryForwarder::Finish(SteadyTime deadline) {
  {
    const MutexLock lock(core_->mutex);
    core_->finishing = true;
    core_->wake.NotifyAll();
  }
  thread_.Finish(deadline);
}

}  // namespace rollcall
