// SPDX-License-Identifier: Apache-2.0
// A job that hangs, goes on and hangs again: which of its hangs are one row whose alerts go on
// ("2nd time in 1 min, same rank and line"), and when the end of a hang is reported. Pure: time is
// an argument. One owner, no lock.
//
// A hang joins the row of an earlier one with the same signature if that one was confirmed or ended
// less than kRepeatWithinNs ago, in any attempt of the job. Its alerts continue those of the row,
// as long as no alert has reported the end of the row; else it is announced anew, with its number.
// So the end of a hang after which the job goes on waits for a calm: "resolved" is never the last
// word before the next hang of a row. A job that has ended does not hang again: its end waits for
// nothing, unless its launcher may start it again. Then the attempt that goes on is its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/job_key.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr int64_t kRepeatWithinNs = 600'000'000'000;
inline constexpr int64_t kFirstCalmNs = 20'000'000'000;  // after the first hang
inline constexpr int64_t kCalmNs = 120'000'000'000;      // after a hang of a job that flaps
inline constexpr int64_t kRestartsWithinNs = 60'000'000'000;

class AlertFolds {
 public:
  struct Place {
    v1::Repeat repeat;        // not set for the first of a row
    std::string first_words;  // of the first hang, as of now: "3 times in 1 min, same rank"
  };
  // The confirmed hang is about to be announced. Its signature needs its verdicts and lines.
  Place Add(const v1::Incident& hang, int64_t now_ns);
  // Whether an alert reported the hang, which has alerts of its own. Add() expects it of each.
  void SetTold(const v1::Incident& hang, bool told);

  // The hang is over. True if it must be reported now. False if TakeEnds() will return it, unless
  // it comes back.
  struct Ending {
    bool is_last = false;      // the job may cause no further alert in this hour
    bool may_restart = false;  // a launcher that restarts jobs has started it
  };
  bool EndsNow(const v1::Incident& hang, const Ending& ending, int64_t now_ns);
  // This attempt of the job goes on: the hangs of earlier ones whose ends wait are over well.
  void GoOn(const JobKey& attempt, int64_t now_ns);
  // The ends that are due.
  std::vector<v1::Incident> TakeEnds(int64_t now_ns);

  // Another daemon has the job.
  void Drop(const JobId& job) { jobs_.erase(job); }

  size_t jobs() const { return jobs_.size(); }

 private:
  struct Row {
    std::string signature, ranks, line;
    std::string first, newest;  // ids
    std::string thread;
    google::protobuf::Timestamp thread_opened_at;
    int32_t number = 1;
    int64_t first_ns = 0, last_ns = 0;
    bool is_told = true;   // of the hang `thread`
    bool is_over = false;  // the newest hang
    v1::Incident end;      // waits to be reported; without an id: none does
    int64_t end_due_ns = 0;
  };
  using Rows = std::vector<Row>;

  static Row* FindSignature(const std::string& signature, Rows* rows);
  static Row Begin(const v1::Incident& hang, const std::string& signature, int64_t now_ns);
  Row* FindNewest(const v1::Incident& hang);
  static void DropOld(int64_t now_ns, Rows* rows);

  std::map<JobId, Rows> jobs_;
};

}  // namespace rollcall
