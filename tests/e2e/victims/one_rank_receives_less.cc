// SPDX-License-Identifier: Apache-2.0
// Rank 1 receives half of what rank 0 sends.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(3);
  if (self.rank == 0) {
    CHECK_NCCL(ncclSend(self.send.data(), victim::kCount, ncclFloat, 1, self.comm, self.stream));
  } else if (self.rank == 1) {
    CHECK_NCCL(
        ncclRecv(self.recv.data(), victim::kCount / 2, ncclFloat, 0, self.comm, self.stream));
  }
  self.Wait();
  self.Train(1);
  self.Finish();
}
