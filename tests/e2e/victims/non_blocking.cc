// SPDX-License-Identifier: Apache-2.0
// Trains with a non-blocking communicator: after each call the program polls until NCCL has
// launched the call, as PyTorch does with TORCH_NCCL_USE_COMM_NONBLOCKING. WRONG in the environment
// is the place where the last rank stops: a number of steps, or "init" or "finalize", which it
// never enters.
// With WATCHDOG another thread polls the communicator all the time.
#include <ctype.h>
#include <string.h>

#include <atomic>
#include <thread>

#include "tests/e2e/victims/victim.h"

namespace {

constexpr int kSteps = 8;

__attribute__((noinline)) void Rest() {
  for (;;) pause();
}

void AwaitLaunched(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    usleep(1000);
  }
  CHECK_NCCL(state);
}

void CheckStarted(ncclResult_t result) {
  if (result != ncclInProgress) CHECK_NCCL(result);
}

}  // namespace

int main() {
  const int rank = victim::OnOwnDevice(JobRank());
  const char* wrong = rank == JobSize() - 1 ? getenv("WRONG") : nullptr;
  const auto is_wrong = [wrong](const char* what) {
    return wrong != nullptr && strcmp(wrong, what) == 0;
  };
  const int steps = wrong != nullptr && isdigit(wrong[0]) ? atoi(wrong) : kSteps;
  const ncclUniqueId id = ShareUniqueId();
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  const DeviceBuffer<float> send(victim::kCount), recv(victim::kCount);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm;
  if (is_wrong("init")) Rest();
  CheckStarted(ncclCommInitRankConfig(&comm, JobSize(), id, rank, &config));
  AwaitLaunched(comm);
  std::atomic<bool> over{false};
  std::thread watchdog([&] {
    ncclResult_t state;
    while (!over && getenv("WATCHDOG") != nullptr) CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
  });
  for (int i = 0; i < steps; ++i) {
    CheckStarted(
        ncclAllReduce(send.data(), recv.data(), victim::kCount, ncclFloat, ncclSum, comm, stream));
    AwaitLaunched(comm);
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  if (steps < kSteps || is_wrong("finalize")) Rest();
  CheckStarted(ncclCommFinalize(comm));
  AwaitLaunched(comm);
  over = true;
  watchdog.join();
  CHECK_NCCL(ncclCommDestroy(comm));
}
