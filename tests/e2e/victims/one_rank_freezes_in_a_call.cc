// SPDX-License-Identifier: Apache-2.0
// All ranks enter the call; rank 1 is stopped before its part of it is done.
#include "tests/e2e/victims/victim.h"

namespace {

constexpr size_t kLarge = 16 << 20;  // elements: long enough to be stopped in the middle

}  // namespace

int main() {
  victim::Rank self;
  self.Train(3);
  DeviceBuffer<float> send(kLarge), recv(kLarge);
  CHECK_CUDA(cudaDeviceSynchronize());
  self.Train(1);  // all begin the next one together
  CHECK_NCCL(
      ncclAllReduce(send.data(), recv.data(), kLarge, ncclFloat, ncclSum, self.comm, self.stream));
  usleep(20 * 1000);
  if (self.rank == 1) raise(SIGSTOP);
  self.Wait();
  self.Finish();
}
