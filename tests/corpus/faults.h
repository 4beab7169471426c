// SPDX-License-Identifier: Apache-2.0
// The table of faults.
#pragma once

#include <vector>

#include "cases.h"

namespace rollcall::corpus {

struct Fault {
  const char* name;
  int weight;  // share among all cases
  // Makes the plan and adds the fault. False: this plan cannot have the fault.
  bool (*inject)(Random& random, int ranks, Case* c);
  // Fills in the right answer after the run. False: the fault had no effect.
  bool (*judge)(Case* c);
  // How the histories differ, if they do.
  DivergenceKind divergence = DivergenceKind::kNone;
};

const std::vector<Fault>& Faults();

// The kinds of calls in which others wait for a rank after the run.
struct Owed {
  bool creation = false, collective = false, p2p = false, teardown = false;
  bool any() const { return creation || collective || p2p || teardown; }
};
Owed OwedBy(const Case& c, int rank);

}  // namespace rollcall::corpus
