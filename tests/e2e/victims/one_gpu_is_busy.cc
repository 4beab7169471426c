// SPDX-License-Identifier: Apache-2.0
// Endless work blocks rank 2's stream before the all-reduce, which the rank's host
// has issued like the others.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(6);
  if (self.rank == 2) {
    CHECK_CUDA(cudaLaunchHostFunc(self.stream, [](void*) { sleep(3600); }, nullptr));
  }
  self.Train(1);
  self.Finish();
}
