// SPDX-License-Identifier: Apache-2.0
// The faults that cases are made of: one table.
#pragma once

#include <vector>

#include "cases.h"

namespace rollcall::corpus {

struct Fault {
  const char* name;
  int weight;
  // Makes the plan and breaks it. False: this one cannot be broken that way.
  bool (*inject)(Random& random, int ranks, Case* c);
  // Fills in the truth from what came of it. False: nothing came of it.
  bool (*judge)(Case* c);
  // How the histories part, where they do.
  DivergenceKind divergence = DivergenceKind::kNone;
};

const std::vector<Fault>& Faults();

// Of a rank, after the run: what others wait in for it.
struct Owed {
  bool creation = false, collective = false, p2p = false, teardown = false;
  bool any() const { return creation || collective || p2p || teardown; }
};
Owed OwedBy(const Case& c, int rank);

}  // namespace rollcall::corpus
