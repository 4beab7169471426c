// SPDX-License-Identifier: Apache-2.0
// One process with a thread and a rank for each of three devices. The thread of device 1 waits for
// a batch that its reader never brings; the others wait for it in the next call.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/e2e/victims/victim.h"

namespace {

constexpr int kDevices = 3;
constexpr int kSteps = 50;

// What a reader brings to one device.
struct Batches {
  std::mutex mutex;
  std::condition_variable came;
  int ready = kSteps;
};

__attribute__((noinline)) void NextBatch(Batches* batches, int step) {
  std::unique_lock<std::mutex> lock(batches->mutex);
  while (batches->ready <= step) batches->came.wait(lock);
}

__attribute__((noinline)) void TrainOn(int device, ncclComm_t comm, Batches* batches) {
  CHECK_CUDA(cudaSetDevice(device));
  DeviceBuffer<float> gradients(victim::kCount);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  for (int step = 0; step < kSteps; ++step) {
    NextBatch(batches, step);
    CHECK_NCCL(ncclAllReduce(gradients.data(), gradients.data(), gradients.count(), ncclFloat,
                             ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<ncclComm_t> comms(kDevices);
  CHECK_NCCL(ncclCommInitAll(comms.data(), kDevices, nullptr));
  std::vector<Batches> batches(kDevices);
  if (!victim::IsFixed(argc, argv)) batches[1].ready = 30;
  std::vector<std::thread> threads;
  for (int device = 0; device < kDevices; ++device) {
    threads.emplace_back(TrainOn, device, comms[device], &batches[device]);
  }
  for (std::thread& thread : threads) thread.join();
  for (ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
}
