// SPDX-License-Identifier: Apache-2.0
// The open history: a file of SQLite; or a spool, and the database that gets all of it
// (history_forwarder.h).
//
// One thread opens, writes and closes it. Others read meanwhile, through connections of their own.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/history/earlier_history.h"
#include "daemon/history/history_forwarder.h"
#include "daemon/history/history_keeper_options.h"
#include "daemon/history/history_spool.h"

namespace rollcall {

class HistoryFile {
 public:
  using Use = HistoryUse;
  // `note`: what the answer lacks, or empty. Runs again, with the spool, if the database fails.
  using Query = std::function<absl::Status(const History& history, const std::string& note)>;

  // The options must outlive the file. `earlier` gets what the file has when it first opens.
  HistoryFile(const HistoryKeeperOptions& options, std::shared_ptr<EarlierHistory> earlier)
      : options_(options), earlier_(std::move(earlier)) {}

  // Begins to reach the database, if there is one. Before any other thread uses the file.
  void Connect();

  // Only the writing thread calls this. `writing`: nullptr while the file is not open.
  absl::Status Open();
  void Close();
  // Renames a damaged file: Open() begins a new one.
  void Replace();
  History* writing() const { return writing_.get(); }

  // The threads that read call this.
  bool IsOpen() const;
  absl::Status Run(Use use, const Query& query);
  // The incidents that the spool has in a newer state than this history, which a query got.
  std::vector<v1::Incident> NewerThan(const History& history) const;
  // Whether a query found the open file damaged: the writing thread may not have read that part.
  bool IsDamaged() const;

  // nullptr if there is no database.
  HistoryForwarder* forwarder() const { return forwarder_.get(); }
  std::shared_ptr<HistorySpool> spool() const;  // nullptr if no database, or the file is not open

 private:
  using Readers = std::array<std::shared_ptr<const History>, 2>;  // by Use

  absl::StatusOr<Readers> OpenReaders() const;
  absl::Status OpenSpool();
  absl::Status LoadSpool(const std::shared_ptr<HistorySpool>& spool);
  absl::Status LoadFrom(const History& history);

  const HistoryKeeperOptions& options_;
  const std::shared_ptr<EarlierHistory> earlier_;
  std::unique_ptr<HistoryForwarder> forwarder_;
  std::shared_ptr<History> writing_;  // only for the writing thread

  mutable Mutex mutex_;
  Readers readers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<HistorySpool> spool_ ABSL_GUARDED_BY(mutex_);
  bool is_damaged_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
