// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA by itself: order, waiting, memory, captures, errors.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <vector>

namespace {

// Holds a stream until it is opened.
class Barrier {
 public:
  explicit Barrier(cudaStream_t stream) {
    EXPECT_EQ(cudaLaunchHostFunc(
                  stream,
                  [](void* self) { static_cast<Barrier*>(self)->open_.get_future().wait(); }, this),
              cudaSuccess);
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
};

struct Note {
  std::vector<int>* order;
  int what;
};
void Append(void* data) {
  const Note* note = static_cast<const Note*>(data);
  note->order->push_back(note->what);
}

class SimulatedCuda : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&blocking_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&free_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    cudaStreamDestroy(blocking_);
    cudaStreamDestroy(free_);
  }
  cudaStream_t blocking_ = nullptr;
  cudaStream_t free_ = nullptr;
};

TEST_F(SimulatedCuda, WorkOfAStreamRunsInOrderAndLater) {
  std::vector<int> order;
  Note notes[] = {{&order, 1}, {&order, 2}, {&order, 3}};
  Barrier barrier(free_);
  for (Note& note : notes) ASSERT_EQ(cudaLaunchHostFunc(free_, Append, &note), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(free_), cudaErrorNotReady);
  EXPECT_TRUE(order.empty());
  barrier.Open();
  EXPECT_EQ(cudaStreamSynchronize(free_), cudaSuccess);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  cudaGetLastError();
}

TEST_F(SimulatedCuda, NullStreamWaitsForBlockingStreamsOnly) {
  Barrier held(free_);
  EXPECT_EQ(cudaMemset(nullptr, 0, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);  // the non-blocking one does not hold it
  Barrier also_held(blocking_);
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, [](void*) {}, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  also_held.Open();
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  held.Open();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(SimulatedCuda, BlockingStreamWaitsForTheNullStream) {
  Barrier held(nullptr);
  ASSERT_EQ(cudaLaunchHostFunc(blocking_, [](void*) {}, nullptr), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(free_, [](void*) {}, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(free_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(blocking_), cudaErrorNotReady);
  held.Open();
  EXPECT_EQ(cudaStreamSynchronize(blocking_), cudaSuccess);
}

TEST_F(SimulatedCuda, EventOrdersStreams) {
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded
  Barrier held(free_);
  ASSERT_EQ(cudaEventRecord(event, free_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(blocking_, event, 0), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(blocking_), cudaErrorNotReady);
  held.Open();
  EXPECT_EQ(cudaStreamSynchronize(blocking_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
}

TEST_F(SimulatedCuda, PageableSourceMayBeReusedAtOnce) {
  int* device = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int)), cudaSuccess);
  int source = 7, result = 0;
  Barrier held(free_);
  ASSERT_EQ(cudaMemcpyAsync(device, &source, sizeof(int), cudaMemcpyHostToDevice, free_),
            cudaSuccess);
  source = 8;
  held.Open();
  ASSERT_EQ(cudaMemcpyAsync(&result, device, sizeof(int), cudaMemcpyDeviceToHost, free_),
            cudaSuccess);
  EXPECT_EQ(result, 7);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_F(SimulatedCuda, DriverWritesWordsInStreamOrder) {
  uint64_t word = 0;
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemHostRegister(&word, sizeof(word), CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister(&word, sizeof(word), CU_MEMHOSTREGISTER_DEVICEMAP),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ASSERT_EQ(cuMemHostGetDevicePointer(&address, &word, 0), CUDA_SUCCESS);
  Barrier held(free_);
  ASSERT_EQ(cuStreamWriteValue64(free_, address, 42, 0), CUDA_SUCCESS);
  EXPECT_EQ(__atomic_load_n(&word, __ATOMIC_ACQUIRE), 0u);
  held.Open();
  ASSERT_EQ(cuStreamSynchronize(free_), CUDA_SUCCESS);
  EXPECT_EQ(__atomic_load_n(&word, __ATOMIC_ACQUIRE), 42u);
  EXPECT_EQ(cuMemHostUnregister(&word), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(&word), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(SimulatedCuda, CapturedWorkRunsOnlyWithItsGraph) {
  std::atomic<int> runs{0};
  const auto count = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
  ASSERT_EQ(cudaStreamBeginCapture(free_, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(free_, count, &runs), cudaSuccess);
  CUstreamCaptureStatus status;
  ASSERT_EQ(cuStreamIsCapturing(free_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaStreamEndCapture(free_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(free_), cudaSuccess);
  EXPECT_EQ(runs, 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(executable, free_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(free_), cudaSuccess);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(SimulatedCuda, SynchronizingACapturingStreamSpoilsTheCapture) {
  ASSERT_EQ(cudaStreamBeginCapture(free_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(free_), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph;
  EXPECT_EQ(cudaStreamEndCapture(free_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SimulatedCuda, ContextBelongsToTheThread) {
  CUcontext mine = nullptr, others = reinterpret_cast<CUcontext>(1);
  ASSERT_EQ(cuCtxGetCurrent(&mine), CUDA_SUCCESS);
  EXPECT_NE(mine, nullptr);
  std::async(std::launch::async, [&] { cuCtxGetCurrent(&others); }).wait();
  EXPECT_EQ(others, nullptr);
}

TEST_F(SimulatedCuda, WrongHandlesAreErrors) {
  cudaStream_t gone;
  ASSERT_EQ(cudaStreamCreate(&gone), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(100000), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(SimulatedCuda, NamedDriverFunctionFails) {
  ASSERT_EQ(setenv("ROLLCALL_SIM_FAIL", "cuInit,cuStreamWriteValue32_v2", 1), 0);
  uint32_t word = 0;
  EXPECT_EQ(cuStreamWriteValue32(free_, reinterpret_cast<CUdeviceptr>(&word), 1, 0),
            CUDA_ERROR_NOT_SUPPORTED);
  unsetenv("ROLLCALL_SIM_FAIL");
}

TEST_F(SimulatedCuda, ForkedChildGetsAnErrorAndNoHang) {
  const pid_t child = fork();
  if (child == 0) _exit(cudaDeviceSynchronize() == cudaErrorInitializationError ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
