// SPDX-License-Identifier: Apache-2.0
// A rank that makes CALLS_PER_SECOND collectives a second until a signal ends it. agent_cost.py
// starts it with tests/ranks. A step of 10 ms enqueues its calls and then waits for the stream, as
// a training step does.
//
// Each second rank 0 prints the time (CLOCK_MONOTONIC, seconds) and the number of calls so far.
#include <stdint.h>
#include <time.h>

#include "tests/support/job.h"

namespace {

constexpr int kStepsPerSecond = 100;
constexpr long kStepNs = 1'000'000'000 / kStepsPerSecond;
constexpr size_t kCount = 256;

timespec Later(timespec time, long ns) {
  time.tv_nsec += ns;
  time.tv_sec += time.tv_nsec / 1'000'000'000;
  time.tv_nsec %= 1'000'000'000;
  return time;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || atoi(argv[1]) < kStepsPerSecond) {
    fprintf(stderr, "usage: tests/ranks -n N -- paced_rank CALLS_PER_SECOND   (at least %d)\n",
            kStepsPerSecond);
    return 2;
  }
  const int calls_per_step = atoi(argv[1]) / kStepsPerSecond;
  CHECK_CUDA(cudaSetDevice(JobRank()));
  const DeviceBuffer<float> send(kCount), recv(kCount);
  cudaStream_t stream = nullptr;
  ncclComm_t comm = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_NCCL(ncclCommInitRank(&comm, JobSize(), ShareUniqueId(), JobRank()));
  timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (uint64_t step = 1;; ++step) {
    for (int i = 0; i < calls_per_step; ++i) {
      CHECK_NCCL(ncclAllReduce(send.data(), recv.data(), kCount, ncclFloat, ncclSum, comm, stream));
    }
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (JobRank() == 0 && step % kStepsPerSecond == 0) {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      printf("%.3f %llu\n",
             static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9,
             static_cast<unsigned long long>(step) * static_cast<unsigned>(calls_per_step));
      fflush(stdout);
    }
    next = Later(next, kStepNs);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
  }
}
