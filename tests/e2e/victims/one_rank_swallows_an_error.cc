// SPDX-License-Identifier: Apache-2.0
// Rank 1 asks for a root that does not exist, and goes on as if nothing were
// wrong.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(3);
  ncclBroadcast(self.send.data(), self.recv.data(), victim::kCount, ncclFloat,
                self.rank == 1 ? self.world : 0, self.comm, self.stream);
  self.Wait();
  if (self.rank == 1) sleep(3600);
  self.Train(1);
  self.Finish();
}
