// SPDX-License-Identifier: Apache-2.0
// Keeps the history on three threads: one writes, one reads incidents, and one answers queries over
// all of it, which can take long. No other thread waits for SQLite or the disk beyond a time limit.
//
// Only the newest state of each incident waits. The keeper retries a failed save (a full disk, a
// locked or missing file) after 1 s, then after growing pauses, until it succeeds. It renames a
// damaged file and begins a new one; if the file is removed it begins a new one, too. Thread-safe.
//
// All writes reach the file in the order of the calls, except that a newer state of an incident
// takes the place of the waiting one.
//
// With a database the file is its spool (daemon/history/history_spool.h): a write counts as saved
// once the spool has it, and another thread brings it to the database (history_forwarder.h). Lists
// and incidents come from the database, and from the spool while that is away.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/worker.h"
#include "daemon/history/alert_outbox.h"
#include "daemon/history/history.h"
#include "daemon/history/history_keeper_options.h"
#include "daemon/history/question_desk.h"

namespace rollcall {

// What waits is in a queue (write_queue.h); one thread brings it to the file (history_writer.h),
// which the other threads read (history_file.h).
class HistoryKeeper {
 public:
  struct Counts {
    uint64_t failed = 0;   // failed attempts to save
    uint64_t lost = 0;     // incidents, alerts, receipts and lists of hosts dropped
    uint64_t waiting = 0;  // unsaved ones now
    // Of a database: whether there is one, whether it answers, and what of it waits in the spool.
    bool has_database = false, is_connected = false;
    uint64_t spooled = 0, spooled_bytes = 0;
    uint64_t fenced = 0;  // writes dropped, because another daemon has had their job since
  };

  explicit HistoryKeeper(HistoryKeeperOptions options);
  ~HistoryKeeper();
  HistoryKeeper(const HistoryKeeper&) = delete;
  HistoryKeeper& operator=(const HistoryKeeper&) = delete;

  // Returns kUnavailable, with the reason, if the file is unusable and not optional.
  absl::Status Start();

  // Returns the highest n of the job's ids "<job>-<n>", saved or not; 0 if there is none.
  int LastNumber(const JobId& job) const;
  // Another daemon has given ids up to this one.
  void RaiseNumber(const JobId& job, int number);

  void Save(v1::Incident incident);
  // A write of anything else (history_write.h).
  void Apply(v1::HistoryWrite write);

  // The part that keeps alerts; usable after the keeper has ended, without effect.
  std::shared_ptr<AlertOutbox> outbox() const;

  // Waits until all that was given to the keeper before is in the file. False if it took longer
  // than `patience_ns`; the keeper goes on trying.
  bool AwaitSaved(int64_t patience_ns);

  // It is proven now that this daemon has the job, or that what it found out does not count.
  void ReleaseHeld(const JobId& job);
  void DropHeld(const JobId& job);

  // Returns a function that reports whether all that was given to the keeper before this call is in
  // the database. Neither waits.
  std::function<bool()> Barrier() const;

  // What the file had when the keeper first opened it; once, as soon as it is open.
  std::optional<Continuation> ConsumeContinuation();

  // Returns true once after a new file replaced an old one. The caller should then save its
  // incidents, alerts, hosts and attempts again.
  bool ConsumeRecreated();

  // Newest first. `live` are incidents whose state the caller has newer than the history. Returns
  // kUnavailable if the history is unreadable or does not respond in time.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request,
                                                 const std::vector<v1::Incident>& live) const;
  // As History::Answer(), of what is saved. Fails as List() does; and where the query reads all of
  // the history: kAborted: the answer needs longer than the caller may wait; the keeper goes on,
  // and the caller may ask again. kResourceExhausted: too many queries wait, of all callers or of
  // this one.
  absl::StatusOr<v1::HistoryAnswer> Answer(const v1::HistoryQuery& query,
                                           const HistoryCaller& caller = {}) const;
  // Answers one request of history_query.h in the same way.
  template <typename Request>
  absl::StatusOr<HistoryAnswerTo<Request>> Ask(const Request& request,
                                               const HistoryCaller& caller = {}) const {
    return AnswerIn<Request>(Answer(QueryOf(request), caller));
  }
  // kNotFound: there is no such incident. kUnavailable, kDataLoss: as List().
  absl::StatusOr<v1::Incident> Get(const std::string& id) const;

  Counts counts() const;

  // Saves the waiting incidents and ends the threads. Incidents that are unsaved at `deadline` are
  // lost and logged.
  void Finish(SteadyTime deadline);

 private:
  struct Core;
  class Outbox;
  // Runs on the thread that reads incidents.
  template <typename T>
  absl::StatusOr<T> OnReader(
      std::function<absl::StatusOr<T>(const History& history, const std::string& note)> read) const;

  const std::shared_ptr<Core> core_;
  Worker writer_, questions_;
  mutable Worker reader_;
};

}  // namespace rollcall
