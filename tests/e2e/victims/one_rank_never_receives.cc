// SPDX-License-Identifier: Apache-2.0
// Rank 0 sends what rank 1, which is busy with something else, does not receive.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(3);
  if (self.rank == 0) {
    CHECK_NCCL(ncclSend(self.send.data(), victim::kCount, ncclFloat, 1, self.comm, self.stream));
    self.Wait();
  } else {
    sleep(3600);
  }
  self.Finish();
}
