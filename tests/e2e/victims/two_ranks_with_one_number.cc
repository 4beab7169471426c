// SPDX-License-Identifier: Apache-2.0
// Two nodes with two GPUs each. The second one got another number of GPUs, so two processes join as
// rank 1 of 4 and none joins as rank 3. NCCL refuses one of the two, which exits with 1.
#include "tests/e2e/victims/victim.h"

int main(int argc, char** argv) {
  const int node = JobRank() / 2, local = JobRank() % 2;
  const int gpus_per_node = node == 1 && !victim::IsFixed(argc, argv) ? 1 : 2;
  const int rank = node * gpus_per_node + local;
  victim::OnOwnDevice(JobRank());
  DeviceBuffer<float> data(victim::kCount);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, JobSize(), ShareUniqueId(), rank));
  for (int step = 0; step < 20; ++step) {
    CHECK_NCCL(
        ncclAllReduce(data.data(), data.data(), data.count(), ncclFloat, ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  CHECK_NCCL(ncclCommDestroy(comm));
}
