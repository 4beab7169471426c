// SPDX-License-Identifier: Apache-2.0
// Two threads of the last rank call AllReduce on one communicator at the same time. The other ranks
// make one call, so the second one of the last rank never ends.
#include <thread>

#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  if (self.rank == self.world - 1) {
    std::thread other([&self] { self.AllReduce(); });
    self.AllReduce();
    other.join();
  } else {
    usleep(500'000);  // the first call connects, so it lasts until all ranks have entered it
    self.AllReduce();
  }
  self.Wait();
  for (;;) pause();
}
