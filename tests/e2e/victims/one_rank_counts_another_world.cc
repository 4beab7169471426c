// SPDX-License-Identifier: Apache-2.0
// Rank 1 got a world that is larger by one. It comes last, so NCCL refuses it and not the others,
// and it exits with 1, as most programs do.
#include "tests/e2e/victims/victim.h"

int main(int argc, char** argv) {
  const bool wrong = JobRank() == 1 && !victim::IsFixed(argc, argv);
  if (wrong) usleep(500'000);
  victim::OnOwnDevice(JobRank());
  DeviceBuffer<float> data(victim::kCount);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  const int world = JobSize() + (wrong ? 1 : 0);
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, world, ShareUniqueId(), JobRank()));
  for (int step = 0; step < 20; ++step) {
    CHECK_NCCL(
        ncclAllReduce(data.data(), data.data(), data.count(), ncclFloat, ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  CHECK_NCCL(ncclCommDestroy(comm));
}
