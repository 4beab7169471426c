// SPDX-License-Identifier: Apache-2.0
// The main thread reduces gradients, and a thread beside it broadcasts the next batch on a
// communicator that was split off: nothing orders the two calls, and the device has room for one
// kernel. Fixed: the broadcast of the next batch comes before each reduction, in the same thread.
#include <thread>

#include "tests/e2e/victims/victim.h"

namespace {

struct Loader {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  DeviceBuffer<float> batch{victim::kCount / 2};

  void Fetch() {
    CHECK_NCCL(
        ncclBroadcast(batch.data(), batch.data(), batch.count(), ncclFloat, 0, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
};

__attribute__((noinline)) void Prefetch(Loader* loader, int rank) {
  victim::OnOwnDevice(rank);
  for (;;) {
    usleep(400 - 80 * rank);
    loader->Fetch();
  }
}

__attribute__((noinline)) void TrainStep(victim::Rank* self) {
  self->AllReduce();
  self->Wait();
}

}  // namespace

int main(int argc, char** argv) {
  const bool fixed = victim::IsFixed(argc, argv);
  victim::Rank self;
  Loader loader;
  CHECK_CUDA(cudaStreamCreateWithFlags(&loader.stream, cudaStreamNonBlocking));
  CHECK_NCCL(ncclCommSplit(self.comm, 0, self.rank, &loader.comm, nullptr));
  if (fixed) {
    for (int step = 0; step < 200; ++step) {
      loader.Fetch();
      TrainStep(&self);
    }
    CHECK_NCCL(ncclCommDestroy(loader.comm));
    self.Finish();
    return 0;
  }
  std::thread prefetcher(Prefetch, &loader, self.rank);
  for (;;) {
    usleep(200 + 80 * self.rank);
    TrainStep(&self);
  }
}
