// SPDX-License-Identifier: Apache-2.0
// Rank 3 does something else where the others destroy their communicators.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(3);
  if (self.rank == 3) sleep(3600);
  self.Finish();
}
