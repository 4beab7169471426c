// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_file.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/history/postgres_database.h"
#include "daemon/history/sqlite_history.h"

namespace rollcall {
namespace {

// A daemon continues from the spool if the database has not answered by then.
constexpr std::chrono::seconds kDatabasePatience{8};
constexpr int64_t kTryDatabaseWithin = 4 * kSecond;
// The spool is not an archive: only what a restarted daemon needs, and the newest incidents.
constexpr HistoryLimits kSpoolLimits = {14 * 86400 * kSecond, int64_t{256} << 20};

// The database and the daemon, as the spool remembers them.
std::string KnownAs(const PostgresOptions& database) {
  const auto shown = PostgresUrlInPublic(database.url);
  return absl::StrCat(shown.ok() ? *shown : "", " ", database.daemon);
}

}  // namespace

void HistoryFile::Connect() {
  if (options_.database.url.empty()) return;
  HistoryForwarderOptions options;
  options.database = options_.database;
  options.known_as = KnownAs(options.database);
  options.limits = options_.limits;
  options.retry.first_ns = options_.retry.first_ns;
  options.retry.longest_ns = std::min(options_.retry.longest_ns / 2, kTryDatabaseWithin);
  // The forwarder's thread may outlive this file.
  forwarder_ = std::make_unique<HistoryForwarder>(
      options, [earlier = earlier_](Continuation loaded) { earlier->SetLoaded(std::move(loaded)); },
      [earlier = earlier_](const std::map<JobId, int>& known) { earlier->Raise(known); });
}

absl::StatusOr<HistoryFile::Readers> HistoryFile::OpenReaders() const {
  Readers readers;
  for (std::shared_ptr<const History>& reader : readers) {
    auto opened = SqliteHistory::OpenToRead(options_.path);
    if (!opened.ok()) return opened.status();
    reader = *std::move(opened);
  }
  return readers;
}

absl::Status HistoryFile::Open() {
  if (forwarder_ != nullptr) return OpenSpool();
  auto opened = SqliteHistory::Open(options_.path, options_.limits);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<History> writing = *std::move(opened);
  absl::StatusOr<Readers> readers = Readers{writing, writing};
  if (!options_.path.empty()) readers = OpenReaders();
  const absl::Status status = readers.ok() ? LoadFrom(*writing) : readers.status();
  if (!status.ok()) return status;
  writing_ = writing;
  const MutexLock lock(mutex_);
  readers_ = *std::move(readers);
  return absl::OkStatus();
}

absl::Status HistoryFile::OpenSpool() {
  auto opened = HistorySpool::Open(options_.path, kSpoolLimits, {});
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<HistorySpool> writing = *std::move(opened);
  absl::StatusOr<Readers> readers = OpenReaders();
  const absl::Status status = readers.ok() ? LoadSpool(writing) : readers.status();
  if (!status.ok()) return status;
  writing_ = writing;
  const MutexLock lock(mutex_);
  readers_ = *std::move(readers);
  spool_ = writing;
  return absl::OkStatus();
}

// What the daemon continues from comes from the database, which the spool's writes have reached by
// then; from the spool if the database is away and has had all of it once; else from the database,
// later.
absl::Status HistoryFile::LoadSpool(const std::shared_ptr<HistorySpool>& spool) {
  const absl::StatusOr<std::string> known = spool->KnownDatabase();
  if (!known.ok()) return known.status();
  const bool must_load = !earlier_->has_loaded();
  forwarder_->SetSpool(spool, must_load);
  if (!must_load) return absl::OkStatus();
  const bool is_known = *known == KnownAs(options_.database);
  const absl::Status first = forwarder_->AwaitFirstAttempt(kDatabasePatience);
  if (absl::IsUnimplemented(first) || (absl::IsFailedPrecondition(first) && !is_known)) {
    return first;
  }
  const auto patience = first.ok() ? kDatabasePatience : std::chrono::seconds(0);
  if (earlier_->AwaitLoaded(std::chrono::steady_clock::now() + patience) || !is_known) {
    return absl::OkStatus();
  }
  forwarder_->SetSpool(spool, false);
  return LoadFrom(*spool);
}

absl::Status HistoryFile::LoadFrom(const History& history) {
  const absl::StatusOr<std::map<JobId, int>> known = history.LastNumbers();
  if (!known.ok()) return known.status();
  absl::StatusOr<Continuation> loaded = history.Load();
  if (!loaded.ok()) return loaded.status();
  earlier_->Raise(*known);
  earlier_->SetLoaded(*std::move(loaded));
  return absl::OkStatus();
}

void HistoryFile::Close() {
  writing_ = nullptr;
  const MutexLock lock(mutex_);
  readers_ = {};
  spool_ = nullptr;
  is_damaged_ = false;
}

void HistoryFile::Replace() {
  Close();
  SqliteHistory::RenameDamaged(options_.path);
}

bool HistoryFile::IsOpen() const {
  const MutexLock lock(mutex_);
  return readers_[0] != nullptr;
}

bool HistoryFile::IsDamaged() const {
  const MutexLock lock(mutex_);
  return is_damaged_;
}

std::shared_ptr<HistorySpool> HistoryFile::spool() const {
  const MutexLock lock(mutex_);
  return spool_;
}

absl::Status HistoryFile::Run(Use use, const Query& query) {
  std::shared_ptr<const History> file;
  {
    const MutexLock lock(mutex_);
    file = readers_.at(static_cast<size_t>(use));
  }
  if (file == nullptr) return absl::UnavailableError("the history cannot be read now");
  std::string note;
  if (forwarder_ != nullptr) {
    const std::shared_ptr<const History> database = forwarder_->reader(use);
    const absl::Status status =
        database == nullptr ? absl::UnavailableError("") : query(*database, "");
    if (!absl::IsUnavailable(status)) return status;
    if (database != nullptr && !database->IsInPlace()) forwarder_->DropReader(database.get());
    note = absl::StrCat("only incidents of this daemon: the database ", forwarder_->name(),
                        database == nullptr ? " is away" : " did not answer in time");
  }
  const absl::Status status = query(*file, note);
  if (absl::IsDataLoss(status)) {
    const MutexLock lock(mutex_);
    // Else the writing thread has already replaced that file.
    is_damaged_ = is_damaged_ || file == readers_.at(static_cast<size_t>(use));
  }
  return status;
}

std::vector<v1::Incident> HistoryFile::NewerThan(const History& history) const {
  std::shared_ptr<HistorySpool> waits;
  {
    const MutexLock lock(mutex_);
    for (const std::shared_ptr<const History>& reader : readers_) {
      if (reader.get() == &history) return {};
    }
    waits = spool_;
  }
  if (waits == nullptr || waits->waiting().count == 0) return {};
  auto incidents = waits->WaitingIncidents();
  return incidents.ok() ? *std::move(incidents) : std::vector<v1::Incident>();
}

}  // namespace rollcall
