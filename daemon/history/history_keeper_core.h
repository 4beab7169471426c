// SPDX-License-Identifier: Apache-2.0
// Inside the keeper of the history: what its callers and its threads share, and what the threads
// do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/history/history.h"
#include "daemon/history/history_forwarder.h"
#include "daemon/history/history_keeper.h"
#include "daemon/history/history_spool.h"
#include "daemon/history/question_desk.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

// The database and the daemon, as the spool remembers them.
std::string KnownAs(const PostgresOptions& database);

// Shared with the threads, which may outlive the keeper.
struct HistoryKeeper::Core {
  struct Item {
    v1::HistoryWrite write;  // of the incident
    uint64_t order = 0;      // among all writes
    uint64_t version = 0;    // grows with each state, to recognize a newer one
  };

  // A write of anything but an incident.
  struct Note {
    uint64_t order = 0;
    std::optional<v1::HistoryWrite> write;  // nullopt: a mark in the order of the writes
    std::function<void()> written;          // may be empty
  };

  // Writes about a job that another daemon may have.
  struct Held {
    std::map<std::string, v1::Incident> incidents;  // newest states
    std::deque<Note> notes;
  };

  // A read of the history, for the reading thread. The caller may have stopped waiting for it.
  struct ReadTask {
    // `note`: what the answer lacks; "": nothing. Runs again, with the spool, if a database fails.
    using Run = std::function<absl::Status(const History&, const std::string& note)>;
    Run run;
    bool is_done = false;
    bool is_dropped = false;
  };

  explicit Core(HistoryKeeperOptions given) : options(std::move(given)) {}

  void Write();
  void Read(ReadTask* task);
  absl::Status Open();
  absl::Status OpenFile();
  absl::Status OpenSpool();
  absl::Status Restore(const History& from);
  void AddNumbers(const std::map<JobId, int>& known);
  void Close();
  QuestionDesk::Answer Count(const v1::CountIncidentsRequest& request);
  void RunRead(const ReadTask::Run& run, const std::shared_ptr<const History>& from,
               HistoryForwarder::Use use);
  std::vector<v1::Incident> Unsettled(const History& from) const;
  absl::Status SaveNext();
  absl::Status SaveNextNote();
  void Put(std::optional<v1::HistoryWrite> write, std::function<void()> written);
  void Append(Note note) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Keep(v1::Incident incident) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void AddFence(const JobId& job, v1::HistoryWrite* write) const;
  // Writes about a job come in order: none overtakes those that are held.
  bool IsHeld(const JobId& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return held.count(job) > 0 || (options.is_unproven && options.is_unproven(job));
  }
  bool HasWritten(uint64_t order) const;
  absl::Status TrimIfDue();
  void RecordAttempt(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool HasUnsaved() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return !waiting.empty() || !notes.empty();
  }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return HasUnsaved() || history == nullptr || is_damaged;
  }
  bool IsOfFile(const History& read) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return &read == to_read.get() || &read == for_questions.get();
  }
  void MarkDamaged(const History& read);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const HistoryKeeperOptions options;
  std::shared_ptr<History> history;  // only for the writing thread; null: the file is unusable now
  std::unique_ptr<HistoryForwarder> forwarder;  // set before the threads start; null: no database
  QuestionDesk questions;
  int64_t trimmed_ns = 0;  // only for the writing thread

  mutable Mutex mutex;
  Condition wake_writer, wake_caller;
  // Of the file; null: it is unusable now.
  std::shared_ptr<const History> to_read ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const History> for_questions ABSL_GUARDED_BY(mutex);
  std::shared_ptr<HistorySpool> spool ABSL_GUARDED_BY(mutex);  // null: no database, or no file
  std::map<std::string, Item> waiting ABSL_GUARDED_BY(mutex);  // newest unsaved states, by incident
  std::deque<Note> notes ABSL_GUARDED_BY(mutex);
  std::map<JobId, Held> held ABSL_GUARDED_BY(mutex);
  std::optional<Continuation> continuation ABSL_GUARDED_BY(mutex);
  bool has_loaded ABSL_GUARDED_BY(mutex) = false;       // the first file was opened
  std::map<JobId, int> numbers ABSL_GUARDED_BY(mutex);  // highest incident number, by job
  uint64_t next_order ABSL_GUARDED_BY(mutex) = 1;
  int64_t next_try_ns ABSL_GUARDED_BY(mutex) = 0;
  int failures ABSL_GUARDED_BY(mutex) = 0;  // in a row
  Counts counts ABSL_GUARDED_BY(mutex);
  absl::Status problem ABSL_GUARDED_BY(mutex);    // of the last attempt
  bool has_tried ABSL_GUARDED_BY(mutex) = false;  // at least one attempt to open the file has ended
  // A new file was created since ConsumeRecreated().
  bool is_recreated ABSL_GUARDED_BY(mutex) = false;
  bool is_full ABSL_GUARDED_BY(mutex) = false;     // dropped a note since all were saved
  bool is_logged ABSL_GUARDED_BY(mutex) = false;   // that the history cannot be written
  bool is_damaged ABSL_GUARDED_BY(mutex) = false;  // a thread that reads found the file damaged
  bool finishing ABSL_GUARDED_BY(mutex) = false;
};

}  // namespace rollcall
