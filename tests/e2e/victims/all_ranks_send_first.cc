// SPDX-License-Identifier: Apache-2.0
// A ring in which everybody sends before it receives, without a group.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(3);
  const int next = (self.rank + 1) % self.world;
  const int previous = (self.rank + self.world - 1) % self.world;
  CHECK_NCCL(ncclSend(self.send.data(), victim::kCount, ncclFloat, next, self.comm, self.stream));
  CHECK_NCCL(
      ncclRecv(self.recv.data(), victim::kCount, ncclFloat, previous, self.comm, self.stream));
  self.Wait();
  self.Finish();
}
