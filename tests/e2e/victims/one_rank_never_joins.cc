// SPDX-License-Identifier: Apache-2.0
// The last rank is still loading its model when the others create the
// communicator, and will be for ever.
#include "tests/e2e/victims/victim.h"

__attribute__((noinline)) void LoadModel() {
  for (;;) pause();
}

int main() {
  if (JobRank() == JobSize() - 1) LoadModel();
  victim::Rank self;
  self.Train(3);
  self.Finish();
}
