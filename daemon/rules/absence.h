// Calls that some ranks wait in and others have not come to: what the rules for
// absent ranks (missing, exited, died, never joined) have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/progress.h"

namespace rollcall {

struct Absent {
  int32_t rank = -1;     // in the communicator
  int32_t process = -1;  // -1: not known
  Gone gone = Gone::kNo;
  int64_t gone_since_ns = 0;
  // It came, but its process ended before the call did.
  bool came = false;
  // How sure one can be that this rank keeps the others waiting.
  Certainty at_most = Certainty::kCertain;
};

struct Absence {
  const Communicator* communicator = nullptr;
  uint64_t position = 0;
  CallArgs call;  // the creating call where the communicator has not formed
  std::vector<Waiter> waiters;
  std::vector<Absent> absents;
  // What was found out on the way.
  std::vector<std::string> evidence;
  std::vector<std::string> missing_evidence;
};

// The first collective of a communicator that somebody waits in and somebody
// owes.
std::vector<Absence> FindStuckCalls(const JobState& job);

// Communicators whose creation waits for somebody.
std::vector<Absence> FindIncompleteInits(const JobState& job);

// The verdict on those absents of `absence` that are `gone` in this way; none
// if there are none, or the wait is shorter than the limit for them.
std::optional<Verdict> Blame(const JobState& job, const Absence& absence, Cause cause, Gone gone,
                             int64_t now_ns, const Limits& limits);

// Blame() for each of `absences`.
void BlameAll(const JobState& job, const std::vector<Absence>& absences, Cause cause, Gone gone,
              int64_t now_ns, const Limits& limits, std::vector<Verdict>* verdicts);

// Fills in what any verdict says of its communicator.
void SetCommunicator(const Communicator& comm, Verdict* verdict);

// The arguments of the call at `position`, from any rank whose record is left.
CallArgs CallAt(const Communicator& comm, uint64_t position);

}  // namespace rollcall
