// SPDX-License-Identifier: Apache-2.0
// The table of faults.
#pragma once

#include <vector>

#include "cases.h"

namespace rollcall::corpus {

struct Fault {
  const char* name;
  int weight;  // share among all cases; 0 means only if it is asked for by name
  // Makes the plan and adds the fault. False if this plan cannot have the fault.
  bool (*inject)(Random& random, int ranks, Case* c);
  // Fills in the right answer after the run. False if the fault had no effect.
  bool (*judge)(Case* c);
  // How the histories differ, if they do.
  DivergenceKind divergence = DivergenceKind::kNone;
};

const std::vector<Fault>& Faults();

// Faults that no majority decides, in jobs with a past and without one. Only --fault chooses them.
std::vector<Fault> PastFaults();

// Sends and receives that one wrong rank leaves without their other ends. Only --fault chooses
// them.
std::vector<Fault> PipelineFaults();

// Calls of two threads that nothing orders. Only --fault chooses them.
std::vector<Fault> ThreadFaults();

struct FoundDivergence {
  int comm = -1;
  uint64_t position = 0;
  bool operation = false;  // the operation differs, and not only its arguments
  size_t members = 0;
};

// Finds the first difference between the broken rank's history and another rank's.
bool FindDivergence(const Case& c, int broken, FoundDivergence* found);

// The kinds of calls in which others wait for a rank after the run.
struct Owed {
  bool creation = false, collective = false, p2p = false, teardown = false;
  bool any() const { return creation || collective || p2p || teardown; }
};
Owed OwedBy(const Case& c, int rank);

}  // namespace rollcall::corpus
