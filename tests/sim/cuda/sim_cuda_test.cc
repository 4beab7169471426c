// Tests of the simulated CUDA through its public functions only, as programs
// use it. Nothing sleeps: a Gate keeps a stream busy until the test opens it.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call))
#define EXPECT_CUDA(call) EXPECT_EQ(cudaSuccess, (call))

// Keeps the stream that it was put on busy until it is opened.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) { EXPECT_CUDA(cudaLaunchHostFunc(stream, Enter, this)); }
  ~Gate() { Open(); WaitUntilLeft(); }
  void WaitUntilEntered() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return entered_; });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  static void Enter(void* gate) { static_cast<Gate*>(gate)->Block(); }
  void Block() {
    std::unique_lock<std::mutex> lock(mutex_);
    entered_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    left_ = true;
    changed_.notify_all();
  }
  void WaitUntilLeft() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return left_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool entered_ = false, open_ = false, left_ = false;
};

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { EXPECT_CUDA(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

void Increment(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

// Runs `body` in a child of fork; true if it returned true there.
bool InChild(const std::function<bool()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);  // a child that waits for ever fails the test
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Runs `body` in a child where the functions listed in `failing` fail.
bool InChildWithFailing(const char* failing, const std::function<bool()>& body) {
  return InChild([&] {
    setenv("ROLLCALL_SIM_FAIL", failing, 1);
    return body();
  });
}

TEST(SimStream, RunsWorkInTheOrderItWasGiven) {
  Stream stream;
  static std::vector<int> order;
  order.clear();
  static const int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const int& number : numbers) {
    const auto note = [](void* which) { order.push_back(*static_cast<const int*>(which)); };
    ASSERT_CUDA(cudaLaunchHostFunc(stream, note, const_cast<int*>(&number)));
  }
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(order, std::vector<int>(std::begin(numbers), std::end(numbers)));
}

TEST(SimStream, ReturnsBeforeTheWorkIsDone) {
  Stream stream;
  std::atomic<int> ran{0};
  Gate gate(stream);
  ASSERT_CUDA(cudaLaunchHostFunc(stream, Increment, &ran));
  gate.WaitUntilEntered();
  EXPECT_EQ(0, ran);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(stream));
  gate.Open();
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(1, ran);
  EXPECT_CUDA(cudaStreamQuery(stream));
}

TEST(SimStream, ABlockedStreamDoesNotHoldUpAnother) {
  Stream blocked, other;
  Gate gate(blocked);
  gate.WaitUntilEntered();
  std::atomic<int> ran{0};
  ASSERT_CUDA(cudaLaunchHostFunc(other, Increment, &ran));
  ASSERT_CUDA(cudaStreamSynchronize(other));
  EXPECT_EQ(1, ran);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(blocked));
}

TEST(SimStream, NullStreamWaitsForBlockingStreamsAndTheyForIt) {
  Stream first(cudaStreamDefault), second(cudaStreamDefault);
  std::atomic<int> ran{0};
  Gate gate(first);
  ASSERT_CUDA(cudaLaunchHostFunc(nullptr, Increment, &ran));
  ASSERT_CUDA(cudaLaunchHostFunc(second, Increment, &ran));
  gate.WaitUntilEntered();
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(nullptr));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(second));
  EXPECT_EQ(0, ran);
  gate.Open();
  ASSERT_CUDA(cudaStreamSynchronize(second));
  EXPECT_EQ(2, ran);
}

TEST(SimStream, NonBlockingStreamIgnoresTheNullStream) {
  Stream stream(cudaStreamNonBlocking);
  Gate gate(nullptr);
  gate.WaitUntilEntered();
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  std::atomic<int> ran{0};
  ASSERT_CUDA(cudaLaunchHostFunc(stream, Increment, &ran));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(1, ran);
}

TEST(SimStream, DevicesHaveNullStreamsOfTheirOwn) {
  Gate gate(nullptr);  // of device 0
  gate.WaitUntilEntered();
  ASSERT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(cudaStreamSynchronize(nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(nullptr));
}

TEST(SimStream, EachThreadHasItsOwnPerThreadStream) {
  Gate gate(cudaStreamPerThread);
  gate.WaitUntilEntered();
  cudaError_t elsewhere = cudaErrorUnknown;
  std::thread([&elsewhere] { elsewhere = cudaStreamSynchronize(cudaStreamPerThread); }).join();
  EXPECT_CUDA(elsewhere);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(cudaStreamPerThread));
}

TEST(SimStream, WorkOfADestroyedStreamIsStillDone) {
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Stream waiter;
  Event done;
  std::atomic<int> ran{0};
  Gate gate(stream);
  ASSERT_CUDA(cudaLaunchHostFunc(stream, Increment, &ran));
  ASSERT_CUDA(cudaEventRecord(done, stream));
  ASSERT_CUDA(cudaStreamDestroy(stream));
  gate.Open();
  ASSERT_CUDA(cudaEventSynchronize(done));
  EXPECT_EQ(1, ran);
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamQuery(stream));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGetLastError());
}

TEST(SimStream, IsTheDriversStreamAndKnowsItsDevice) {
  cudaGetLastError();
  ASSERT_CUDA(cudaSetDevice(3));
  {
    Stream stream;
    ASSERT_CUDA(cudaSetDevice(0));
    CUcontext of_stream = nullptr, of_device = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCtx(stream, &of_stream));
    EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&of_device, 3));
    EXPECT_EQ(of_device, of_stream);
    int device = -1;
    EXPECT_CUDA(cudaStreamGetDevice(stream, &device));
    EXPECT_EQ(3, device);
  }
  EXPECT_CUDA(cudaPeekAtLastError());
}

TEST(SimStream, CallbackGetsItsStreamAndData) {
  Stream stream;
  static std::atomic<void*> seen{nullptr};
  const auto note = [](cudaStream_t from, cudaError_t, void* data) {
    if (from == data) seen = data;
  };
  ASSERT_CUDA(cudaStreamAddCallback(stream, note, static_cast<cudaStream_t>(stream), 0));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(static_cast<cudaStream_t>(stream), seen);
}

TEST(SimEvent, AStreamWaitsForAnEventOfAnother) {
  Stream producer, consumer;
  Event event;
  std::atomic<int> ran{0};
  Gate gate(producer);
  ASSERT_CUDA(cudaEventRecord(event, producer));
  ASSERT_CUDA(cudaStreamWaitEvent(consumer, event, 0));
  ASSERT_CUDA(cudaLaunchHostFunc(consumer, Increment, &ran));
  gate.WaitUntilEntered();
  EXPECT_EQ(cudaErrorNotReady, cudaEventQuery(event));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(consumer));
  EXPECT_EQ(0, ran);
  gate.Open();
  ASSERT_CUDA(cudaStreamSynchronize(consumer));
  EXPECT_EQ(1, ran);
  EXPECT_CUDA(cudaEventQuery(event));
}

TEST(SimEvent, NeverRecordedHoldsNobodyUp) {
  Stream stream;
  Event event;
  EXPECT_CUDA(cudaEventQuery(event));
  EXPECT_CUDA(cudaEventSynchronize(event));
  EXPECT_CUDA(cudaStreamWaitEvent(stream, event, 0));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
}

TEST(SimEvent, TimeBetweenEventsNeedsBothToHavePassed) {
  Stream stream;
  Event start, end;
  ASSERT_CUDA(cudaEventRecord(start, stream));
  ASSERT_CUDA(cudaEventSynchronize(start));
  float milliseconds = -1;
  {
    Gate gate(stream);
    ASSERT_CUDA(cudaEventRecord(end, stream));
    EXPECT_EQ(cudaErrorNotReady, cudaEventElapsedTime(&milliseconds, start, end));
  }
  ASSERT_CUDA(cudaEventSynchronize(end));
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0);
}

TEST(SimWriteValue, IsWrittenWhenTheStreamComesToIt) {
  Stream stream;
  alignas(8) static std::atomic<uint64_t> word{0};
  alignas(8) static std::atomic<uint32_t> half{0};
  word = 0;
  half = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&word);
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWriteValue64_v2(stream, address, 1, 0));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  Gate gate(stream);
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWriteValue64_v2(stream, address, ~uint64_t{0}, 0));
  ASSERT_EQ(CUDA_SUCCESS,
            cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(&half), 7, 0));
  gate.WaitUntilEntered();
  EXPECT_EQ(1u, word);
  gate.Open();
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(~uint64_t{0}, word);
  EXPECT_EQ(7u, half);
}

TEST(SimWriteValue, RefusesAnUnalignedAddress) {
  Stream stream;
  alignas(8) static char bytes[16];
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuStreamWriteValue64_v2(stream, reinterpret_cast<CUdeviceptr>(bytes + 4), 1, 0));
}

TEST(SimMemory, CopiesAndFillsMoveBytes) {
  const int sent[] = {1, 2, 3, 4};
  int received[4] = {};
  void* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, sizeof(sent)));
  ASSERT_CUDA(cudaMemcpy(memory, sent, sizeof(sent), cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaMemset(memory, 0, sizeof(int)));
  ASSERT_CUDA(cudaMemcpy(received, memory, sizeof(received), cudaMemcpyDeviceToHost));
  EXPECT_EQ((std::vector<int>{0, 2, 3, 4}), std::vector<int>(received, received + 4));
  EXPECT_CUDA(cudaFree(memory));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(memory));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetLastError());
}

TEST(SimMemory, AsynchronousCopyReadsPageableMemoryAtTheCall) {
  Stream stream;
  int value = 1, result = 0;
  int* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), sizeof(int)));
  {
    Gate gate(stream);
    ASSERT_CUDA(cudaMemcpyAsync(memory, &value, sizeof(int), cudaMemcpyHostToDevice, stream));
    value = 2;
  }
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  ASSERT_CUDA(cudaMemcpy(&result, memory, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQ(1, result);
  ASSERT_CUDA(cudaFree(memory));
}

TEST(SimMemory, RegistersHostMemoryOnce) {
  alignas(4096) static char page[4096];
  EXPECT_EQ(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(page));
  ASSERT_CUDA(cudaHostRegister(page, sizeof(page), cudaHostRegisterMapped));
  EXPECT_EQ(cudaErrorHostMemoryAlreadyRegistered,
            cudaHostRegister(page, sizeof(page), cudaHostRegisterMapped));
  EXPECT_EQ(712, cuMemHostRegister_v2(page + 100, 8, 0));
  void* device = nullptr;
  ASSERT_CUDA(cudaHostGetDevicePointer(&device, page + 8, 0));
  EXPECT_EQ(page + 8, device);
  ASSERT_CUDA(cudaHostUnregister(page));
  EXPECT_EQ(cudaErrorInvalidValue, cudaHostGetDevicePointer(&device, page, 0));
  cudaGetLastError();
}

TEST(SimDevice, CurrentDeviceBelongsToTheThread) {
  ASSERT_CUDA(cudaSetDevice(5));
  int elsewhere = -1, here = -1;
  std::thread([&elsewhere] { cudaGetDevice(&elsewhere); }).join();
  ASSERT_CUDA(cudaGetDevice(&here));
  ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(0, elsewhere);
  EXPECT_EQ(5, here);
}

TEST(SimDevice, UnknownDeviceIsAnErrorThatIsRemembered) {
  EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(100000));
  EXPECT_EQ(cudaErrorInvalidDevice, cudaPeekAtLastError());
  EXPECT_EQ(cudaErrorInvalidDevice, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
}

TEST(SimDevice, NotReadyIsRememberedAsAnError) {
  Stream stream;
  Gate gate(stream);
  cudaGetLastError();
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(stream));
  EXPECT_EQ(cudaErrorNotReady, cudaGetLastError());
}

TEST(SimDriver, FindsTheNewestVersionOfAFunction) {
  void* function = nullptr;
  ASSERT_EQ(CUDA_SUCCESS,
            cuGetProcAddress_v2("cuStreamWriteValue64", &function, CUDA_VERSION, 0, nullptr));
  EXPECT_EQ(reinterpret_cast<void*>(&cuStreamWriteValue64_v2), function);
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND,
            cuGetProcAddress_v2("cuNoSuchThing", &function, CUDA_VERSION, 0, nullptr));
}

TEST(SimDriver, ExportsPlainAndVersionedNames) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(nullptr, library) << dlerror();
  for (const char* name : {"cuStreamWriteValue64", "cuStreamWriteValue64_v2", "cuMemHostRegister",
                           "cuMemHostRegister_v2", "cuMemAlloc", "cuMemAlloc_v2", "cuStreamDestroy",
                           "cuStreamDestroy_v2", "cuCtxPopCurrent", "cuCtxPopCurrent_v2"}) {
    EXPECT_NE(nullptr, dlsym(library, name)) << name;
  }
}

TEST(SimFailure, NamedFunctionsFailAndOthersDoNot) {
  EXPECT_TRUE(InChildWithFailing("cuStreamWriteValue64_v2,cuMemHostRegister_v2", [] {
    static uint64_t word;
    const auto address = reinterpret_cast<CUdeviceptr>(&word);
    Stream stream;
    return cuStreamWriteValue64_v2(stream, address, 1, 0) == CUDA_ERROR_UNKNOWN &&
           cuMemHostRegister_v2(&word, sizeof(word), 0) == CUDA_ERROR_UNKNOWN &&
           cuStreamWriteValue32_v2(stream, address, 1, 0) == CUDA_SUCCESS &&
           cudaStreamSynchronize(stream) == cudaSuccess && word == 1;
  }));
}

TEST(SimDevice, AreAsManyAsTheEnvironmentSays) {
  EXPECT_TRUE(InChild([] {
    setenv("ROLLCALL_SIM_DEVICES", "2", 1);
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count == 2 &&
           cudaSetDevice(1) == cudaSuccess && cudaSetDevice(2) == cudaErrorInvalidDevice;
  }));
}

TEST(SimFork, ChildStartsAfreshWhileItsParentsStreamIsBlocked) {
  Stream stream;
  Gate gate(stream);
  Gate null_gate(nullptr);
  gate.WaitUntilEntered();
  null_gate.WaitUntilEntered();
  const cudaStream_t parents = stream;
  EXPECT_TRUE(InChild([parents] {
    std::atomic<int> ran{0};
    Stream own;
    return cudaStreamQuery(parents) == cudaErrorInvalidResourceHandle &&
           cudaLaunchHostFunc(own, Increment, &ran) == cudaSuccess &&
           cudaLaunchHostFunc(nullptr, Increment, &ran) == cudaSuccess &&
           cudaDeviceSynchronize() == cudaSuccess && ran == 2;
  }));
}

TEST(SimExit, IsNotHeldUpByABlockedStream) {
  EXPECT_TRUE(InChild([] {
    Stream* stream = new Stream;
    Gate* gate = new Gate(*stream);
    gate->WaitUntilEntered();
    exit(0);  // with destructors and exit handlers; alarm() ends it if it hangs
    return false;
  }));
}

}  // namespace
