// SPDX-License-Identifier: Apache-2.0
// Healthy: the last rank works longer than the others for once, $LAG_SECONDS, and all go on.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(10);
  const char* lag = getenv("LAG_SECONDS");
  if (self.rank == self.world - 1) sleep(lag == nullptr ? 2 : static_cast<unsigned>(atoi(lag)));
  self.Train(10);
  self.Finish();
}
