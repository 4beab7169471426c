// SPDX-License-Identifier: Apache-2.0
// Rank 0 uses two communicators in another order than the others; each for
// itself is in order.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  ncclComm_t second = nullptr;
  CHECK_NCCL(ncclCommInitRank(&second, self.world, ShareUniqueId(1), self.rank));
  const auto reduce = [&](ncclComm_t comm) {
    CHECK_NCCL(ncclAllReduce(self.send.data(), self.recv.data(), victim::kCount, ncclFloat, ncclSum,
                             comm, self.stream));
  };
  for (int step = 0; step < 3; ++step) {
    reduce(self.comm);
    reduce(second);
    self.Wait();
  }
  reduce(self.rank == 0 ? second : self.comm);
  reduce(self.rank == 0 ? self.comm : second);
  self.Wait();
  self.Finish();
}
