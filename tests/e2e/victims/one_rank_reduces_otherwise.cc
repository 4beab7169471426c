// SPDX-License-Identifier: Apache-2.0
// Rank 1 takes the maximum where the others take the sum: no call ever hangs,
// the job ends with exit code 0, and its result is wrong.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(3);
  self.AllReduce(victim::kCount, ncclFloat, self.rank == 1 ? ncclMax : ncclSum);
  self.Train(3);
  usleep(1500 * 1000);
  self.Finish();
}
