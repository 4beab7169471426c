// SPDX-License-Identifier: Apache-2.0
// Shared by the victims: a job of ranks (started by tests/support/ranks) that makes
// collectives in a loop. Each victim is an ordinary program with one mistake, and
// none uses anything of Rollcall.
#pragma once

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

namespace victim {

constexpr size_t kCount = 1024;

// Whether the program is to run without its mistake.
inline bool IsFixed(int argc, char** argv) { return argc > 1 && strcmp(argv[1], "--fixed") == 0; }

// For tests/bench/detection_latency.py.
inline void SayEntered() {
  if (getenv("PRINT_TIMES") == nullptr) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  printf("entered %lld.%09ld\n", static_cast<long long>(now.tv_sec), now.tv_nsec);
  fflush(stdout);
}

// If there are fewer devices than ranks, several ranks share one (tests/gpu).
inline int OnOwnDevice(int rank) {
  int devices = 0;
  CHECK_CUDA(cudaGetDeviceCount(&devices));
  CHECK_CUDA(cudaSetDevice(rank % devices));
  return rank;
}

// A communicator over all ranks, a stream, and two buffers.
class Rank {
 public:
  Rank() : rank(OnOwnDevice(JobRank())), world(JobSize()), send(kCount), recv(kCount) {
    const ncclUniqueId id = ShareUniqueId();
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_NCCL(ncclCommInitRank(&comm, world, id, rank));
  }

  void AllReduce(size_t count = kCount, ncclDataType_t dtype = ncclFloat,
                 ncclRedOp_t op = ncclSum) {
    CHECK_NCCL(ncclAllReduce(send.data(), recv.data(), count, dtype, op, comm, stream));
  }
  void Broadcast(int root = 0) {
    CHECK_NCCL(ncclBroadcast(send.data(), recv.data(), kCount, ncclFloat, root, comm, stream));
  }
  void Wait() { CHECK_CUDA(cudaStreamSynchronize(stream)); }

  // Makes `steps` training steps. Each is one all-reduce and a wait for its result.
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      AllReduce();
      Wait();
    }
  }

  // Does what a program does at its end.
  void Finish() {
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_CUDA(cudaStreamDestroy(stream));
  }

  const int rank;
  const int world;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  DeviceBuffer<float> send, recv;
};

}  // namespace victim
