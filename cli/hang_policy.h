// When --on-hang may act on an incident. Pure: all that counts is an argument.
//
// To end a job costs more than a word. So the verdict must be certain or likely, rest on evidence
// that is fresh, and, where a daemon on the network gave it, be borne out by what this host's own
// ranks do: nobody who can reach that daemon's port can end a healthy job by it.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// What is told of a confirmed incident's first verdict.
struct Finding {
  std::string cause;
  std::string certainty;
  int64_t evidence_age_ns = 0;
};

// How long this host's ranks that take part in the call have stood still, as their segments show.
struct LocalStandstill {
  bool is_needed = false;  // the verdict came over the network
  int64_t ns = 0;          // 0: some moved just now, or nothing is known
};

// "" where --on-hang may act now; else what it waits for. `hang_after_ns`: --hang-after.
std::string WhyNotAct(const Finding& finding, const LocalStandstill& local, int64_t hang_after_ns);

}  // namespace rollcall
