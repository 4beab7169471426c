// SPDX-License-Identifier: Apache-2.0
// Rank 2's stream is held up by work that does not end, before the all-reduce
// that its host has issued like the others.
#include "tests/e2e/victim.h"

int main() {
  victim::Rank self;
  self.Train(6);
  if (self.rank == 2) {
    CHECK_CUDA(cudaLaunchHostFunc(self.stream, [](void*) { sleep(3600); }, nullptr));
  }
  self.Train(1);
  self.Finish();
}
