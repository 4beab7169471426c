// SPDX-License-Identifier: Apache-2.0
// The last rank joins a communicator of the others, and all train on. The environment sets what one
// of them does otherwise: WRONG names a rank, and where it stops: "1:before" the communicator
// grows, "3:after" a few steps on the grown one.
#include <string>

#include "tests/e2e/victims/victim.h"
#include "tests/support/nccl_grow.h"

namespace {

__attribute__((noinline)) void Rest() {
  for (;;) pause();
}

void MayRest(int rank, const char* where) {
  const char* wrong = getenv("WRONG");
  if (wrong != nullptr && wrong == std::to_string(rank) + ":" + where) Rest();
}

}  // namespace

int main() {
  const int rank = victim::OnOwnDevice(JobRank());
  const int others = JobSize() - 1;
  const ncclUniqueId first = ShareUniqueId(0);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  const DeviceBuffer<float> send(victim::kCount), recv(victim::kCount);
  const auto train = [&](ncclComm_t comm, int steps) {
    for (int i = 0; i < steps; ++i) {
      CHECK_NCCL(ncclAllReduce(send.data(), recv.data(), victim::kCount, ncclFloat, ncclSum, comm,
                               stream));
      CHECK_CUDA(cudaStreamSynchronize(stream));
    }
  };

  ncclComm_t small = nullptr, grown = nullptr;
  if (rank < others) {
    CHECK_NCCL(ncclCommInitRank(&small, others, first, rank));
    train(small, 3);
  }
  if (rank == 0) {
    const auto make = [&](ncclUniqueId* id) { return ncclCommGetUniqueId(small, id); };
    const ncclUniqueId id = ShareUniqueIdFrom(make, 1);
    MayRest(rank, "before");
    CHECK_NCCL(ncclCommGrow(small, JobSize(), &id, -1, &grown, nullptr));
  } else if (rank < others) {
    MayRest(rank, "before");
    CHECK_NCCL(ncclCommGrow(small, JobSize(), nullptr, -1, &grown, nullptr));
  } else {
    const ncclUniqueId id = ShareUniqueId(1);
    MayRest(rank, "before");
    CHECK_NCCL(ncclCommGrow(nullptr, JobSize(), &id, rank, &grown, nullptr));
  }
  train(grown, 5);
  MayRest(rank, "after");
  train(grown, 5);
  CHECK_NCCL(ncclCommDestroy(grown));
  if (small != nullptr) CHECK_NCCL(ncclCommDestroy(small));
}
