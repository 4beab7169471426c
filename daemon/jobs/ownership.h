// SPDX-License-Identifier: Apache-2.0
// Which jobs this daemon has, where several share a database. Thread-safe; no call waits, and the
// mutex behind them comes after all others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/model/job_key.h"

namespace rollcall {

// Jobs by what a daemon sees of their owner.
struct FleetJobs {
  size_t owned = 0;
  size_t unproven = 0;  // taken without the database, or not yet loaded from it
  size_t leaving = 0;   // on their way to another daemon
  size_t sought = 0;    // agents wait for the answer of the database
};

class JobOwnership {
 public:
  virtual ~JobOwnership() = default;

  // Whether this daemon takes the job's ticks and judges it.
  virtual bool Owns(const JobId& job) const = 0;
  // Whether its alerts may go out now: no other daemon can have the job at this moment.
  virtual bool MayAlert(const JobId& job) const = 0;
  // Returns the token of the ownership, for writes about the job. If another daemon has the job
  // now, it is the last one, so that the database refuses the writes. 0 if this daemon never had
  // the job.
  virtual int64_t TokenOf(const JobId& job) const = 0;
  // Whether this daemon judges the job while another one may have it, as far as this one sees. What
  // it finds out meanwhile must reach neither the database nor a receiver of alerts.
  virtual bool IsUnproven(const JobId& job) const = 0;
  virtual FleetJobs CountJobs() const = 0;
};

}  // namespace rollcall
