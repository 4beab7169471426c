// SPDX-License-Identifier: Apache-2.0
// Healthy and slow: the last rank is the last one to enter each call.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  for (;;) {
    if (self.rank == self.world - 1) usleep(20'000);
    self.Train(1);
  }
}
