// SPDX-License-Identifier: Apache-2.0
// Two threads of each rank reduce, each on a communicator of its own, and nothing orders their
// calls: on a device with room for one kernel, each waits for the other. Fixed: one thread makes
// both calls.
#include <thread>

#include "tests/e2e/victims/victim.h"

namespace {

struct Lane {
  explicit Lane(ncclComm_t comm) : comm(comm), send(victim::kCount), recv(victim::kCount) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void Reduce() {
    CHECK_NCCL(
        ncclAllReduce(send.data(), recv.data(), victim::kCount, ncclFloat, ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }

  ncclComm_t comm;
  cudaStream_t stream = nullptr;
  DeviceBuffer<float> send, recv;
};

__attribute__((noinline)) void ReduceGradients(Lane* lane, int rank) {
  victim::OnOwnDevice(rank);
  for (;;) {
    usleep(300 + 150 * rank);
    lane->Reduce();
  }
}

__attribute__((noinline)) void ReduceMetrics(Lane* lane, int rank) {
  victim::OnOwnDevice(rank);
  for (;;) {
    usleep(450 - 100 * rank);
    lane->Reduce();
  }
}

}  // namespace

int main(int argc, char** argv) {
  victim::Rank self;
  ncclComm_t second = nullptr;
  CHECK_NCCL(ncclCommInitRank(&second, self.world, ShareUniqueId(1), self.rank));
  Lane gradients(self.comm), metrics(second);
  if (victim::IsFixed(argc, argv)) {
    for (int step = 0; step < 200; ++step) {
      gradients.Reduce();
      metrics.Reduce();
    }
    CHECK_NCCL(ncclCommDestroy(second));
    self.Finish();
    return 0;
  }
  std::thread first(ReduceGradients, &gradients, self.rank);
  std::thread other(ReduceMetrics, &metrics, self.rank);
  first.join();
  other.join();
}
