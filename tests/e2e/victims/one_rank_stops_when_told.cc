// SPDX-License-Identifier: Apache-2.0
// The last rank goes off to do something else as soon as there is a file $STOP_FILE.
#include "tests/e2e/victims/victim.h"

__attribute__((noinline)) void Validate() {
  for (;;) pause();
}

int main() {
  victim::Rank self;
  for (;;) {
    if (self.rank == self.world - 1 && access(getenv("STOP_FILE"), F_OK) == 0) Validate();
    self.Train(1);
    usleep(10'000);
  }
}
