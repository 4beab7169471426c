// SPDX-License-Identifier: Apache-2.0
// Each process has two devices, and a thread for each that is a rank of the communicator. The
// thread of rank 3 meets a broken record and ends; its process, and the sibling beside it, live on.
#include <stdexcept>
#include <thread>

#include "tests/e2e/victims/victim.h"

namespace {

constexpr int kDevices = 2;
constexpr int kSteps = 60;

struct DeviceRank {
  int rank;
  int world;
  int device;
  ncclComm_t comm = nullptr;
  bool broken = false;  // one of its records
};

void Read(const DeviceRank& self, int step) {
  if (self.broken && step == 40) throw std::runtime_error("broken record");
}

__attribute__((noinline)) void Train(DeviceRank* self, const ncclUniqueId& id) {
  CHECK_CUDA(cudaSetDevice(self->device));
  DeviceBuffer<float> gradients(victim::kCount);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_NCCL(ncclCommInitRank(&self->comm, self->world, id, self->rank));
  for (int step = 0; step < kSteps; ++step) {
    Read(*self, step);
    CHECK_NCCL(ncclAllReduce(gradients.data(), gradients.data(), gradients.count(), ncclFloat,
                             ncclSum, self->comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
}

void RunThread(DeviceRank* self, const ncclUniqueId& id) {
  try {
    Train(self, id);
  } catch (const std::exception& error) {
    fprintf(stderr, "a thread ends: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const ncclUniqueId id = ShareUniqueId();
  DeviceRank ranks[kDevices];
  std::thread threads[kDevices];
  for (int device = 0; device < kDevices; ++device) {
    DeviceRank& self = ranks[device];
    self.rank = JobRank() * kDevices + device;
    self.world = JobSize() * kDevices;
    self.device = device;
    self.broken = self.rank == self.world - 1 && !victim::IsFixed(argc, argv);
    threads[device] = std::thread(RunThread, &self, id);
  }
  for (std::thread& thread : threads) thread.join();
  for (DeviceRank& self : ranks) CHECK_NCCL(ncclCommDestroy(self.comm));
}
