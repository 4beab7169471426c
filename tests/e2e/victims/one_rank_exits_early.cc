// SPDX-License-Identifier: Apache-2.0
// The last rank has fewer steps than the others, and ends normally.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(self.rank == self.world - 1 ? 12 : 20);
  if (self.rank == self.world - 1) {
    sleep(1);  // on a busy machine the agent looks late, and then it has not seen a rank this short
    return 0;
  }
  self.Finish();
}
