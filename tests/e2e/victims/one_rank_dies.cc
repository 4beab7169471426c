// SPDX-License-Identifier: Apache-2.0
// Rank 1 gets SIGKILL, as from the kernel when memory is short: half a second after its start, or,
// with DIE_AT_ONCE, before an agent may have seen it alive.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(7);
  if (self.rank == 1 && getenv("DIE_AT_ONCE") == nullptr) usleep(500'000);
  if (self.rank == 1) kill(getpid(), SIGKILL);
  self.Train(7);
  self.Finish();
}
