// SPDX-License-Identifier: Apache-2.0
// The last batch of rank 2 is shorter than that of the others.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(6);
  self.AllReduce(self.rank == 2 ? victim::kCount / 2 : victim::kCount);
  self.Wait();
  self.Finish();
}
