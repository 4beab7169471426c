// SPDX-License-Identifier: Apache-2.0
// Rank 0 makes a forward pass of its own, whose buffer broadcast meets the
// others' all-reduce.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(5);
  victim::SayEntered();
  if (self.rank == 0) self.Broadcast();
  self.Train(5);
  self.Finish();
}
