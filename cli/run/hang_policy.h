// SPDX-License-Identifier: Apache-2.0
// Decides when --on-hang may act on an incident. Pure: all inputs are arguments.
//
// Ending a job costs more than printing a line. So the verdict must be certain or likely and rest
// on fresh evidence. If it comes from a daemon on the network, the segments of this host must
// confirm it: a person who can reach the port of that daemon cannot end a healthy job.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// The facts of a confirmed incident's first verdict.
struct Finding {
  std::string cause;
  std::string certainty;
  int64_t evidence_age_ns = 0;
};

// How long the ranks of this host have made no progress in the call, by their segments.
struct LocalStandstill {
  bool is_needed = false;  // the verdict came over the network
  int64_t ns = 0;          // 0 if some rank moved just now, or the time is unknown
  // Another live job may have the name of this one.
  bool is_of_other_job = false;  // no communicator of the incident's job was seen on this host
};

// "" if --on-hang may act now, else the reason to wait. `hang_after_ns`: --hang-after.
std::string WhyNotAct(const Finding& finding, const LocalStandstill& local, int64_t hang_after_ns);

}  // namespace rollcall
