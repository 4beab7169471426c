// SPDX-License-Identifier: Apache-2.0
// Inside the keeper of the history: what its callers and its threads share, and what the threads do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/history/history_forwarder.h"
#include "daemon/history/history_keeper.h"
#include "daemon/history/question_desk.h"
#include "daemon/history/history.h"
#include "daemon/history/history_spool.h"

namespace rollcall {

// The database and the daemon, as the spool remembers them.
std::string KnownAs(const PostgresOptions& database);

// Shared with the threads, which may outlive the keeper.
struct HistoryKeeper::Core {
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
    using Run = std::function<absl::Status(const History&, const std::string& note)>;
    Run run;
    bool is_done = false;
    bool is_dropped = false;
  };

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
  QuestionDesk::Answer Count(const v1::CountIncidentsRequest& request);
  void RunRead(const ReadTask::Run& run, const std::shared_ptr<const History>& from,
               HistoryForwarder::Use use);
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
  bool IsOfFile(const History& read) const { return &read == to_read.get() || &read == for_questions.get(); }
  void MarkDamaged(const History& read);
  void DropOldest();

  const HistoryKeeperOptions options;
  std::shared_ptr<History> history;  // only for the writing thread; null: the file is unusable now
  std::unique_ptr<HistoryForwarder> forwarder;  // set before the threads start; null: no database
  QuestionDesk questions;
  int64_t trimmed_ns = 0;            // only for the writing thread

  mutable std::mutex mutex;  // guards all below
  std::condition_variable wake_writer, wake_reader, wake_caller;
  std::shared_ptr<const History> to_read, for_questions;  // of the file; null: it is unusable now
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
  bool is_damaged = false;  // a thread that reads found the file damaged
  bool finishing = false;
};

}  // namespace rollcall
