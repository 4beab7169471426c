// SPDX-License-Identifier: Apache-2.0
// A libcudart.so and a libcuda.so.1 in one, for tests of the preloaded library:
// memory is host memory, a stream finishes work at once, and writes by the GPU
// happen at once.
//
//   STUB_FAIL=cuX     cuX returns an error
//   STUB_ERRNO=1      the driver leaves another errno behind
//   STUB_BLOCK=cudaX  cudaX waits until a test has opened and closed the FIFO STUB_FIFO
//   STUB_LATE=writes  writes by the GPU happen in cudaDeviceSynchronize
//
// Compiled with STUB_FREE it does not read the environment and captures nothing, and a write by the
// GPU is a plain store. So benchmarks measure only the library's own cost of markers.
//
// It captures one stream at a time. A graph holds the writes by the GPU.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace {

#ifdef STUB_FREE
constexpr bool kFree = true;
constexpr bool Is(const char*, const char*) { return false; }
#else
constexpr bool kFree = false;
bool Is(const char* variable, const char* name) {
  const char* value = getenv(variable);
  return value != nullptr && strcmp(value, name) == 0;
}
#endif

CUresult Answer(const char* name) {
  if (Is("STUB_ERRNO", "1")) errno = EAGAIN;
  return Is("STUB_FAIL", name) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

cudaError_t Wait(const char* name) {
  if (!Is("STUB_BLOCK", name)) return cudaSuccess;
  const int fifo = open(getenv("STUB_FIFO"), O_RDONLY);
  char byte;
  while (read(fifo, &byte, 1) > 0) {
  }
  close(fifo);
  return cudaSuccess;
}

// If no context was pushed, the context of device 0 is current.
CUcontext DeviceContext(int device) {
  static int contexts[64];
  return reinterpret_cast<CUcontext>(&contexts[device]);
}
thread_local std::vector<CUcontext> contexts_pushed;

struct Written {
  CUdeviceptr address;
  cuuint64_t value;
};
using Graph = std::vector<Written>;
Graph* capturing = nullptr;
cuuint64_t captures = 0;
bool capture_is_broken = false;
bool IsCapturing() { return !kFree && capturing != nullptr; }
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

Graph* ToGraph(const void* handle) { return const_cast<Graph*>(static_cast<const Graph*>(handle)); }

std::vector<Written> late;

void WriteNow(const Written& written) {
  *reinterpret_cast<volatile cuuint64_t*>(written.address) = written.value;
}

void Write(const Written& written) {
  if (IsCapturing()) {
    capturing->push_back(written);
  } else if (Is("STUB_LATE", "writes")) {
    late.push_back(written);
  } else {
    WriteNow(written);
  }
}

}  // namespace

extern "C" {

cudaError_t cudaStreamSynchronize(cudaStream_t) { return Wait("cudaStreamSynchronize"); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return Wait("cudaEventSynchronize"); }
cudaError_t cudaDeviceSynchronize() {
  for (const Written& written : late) WriteNow(written);
  late.clear();
  return Wait("cudaDeviceSynchronize");
}
CUresult cuStreamSynchronize(CUstream) {
  return static_cast<CUresult>(Wait("cuStreamSynchronize"));
}
CUresult cuEventSynchronize(CUevent) { return static_cast<CUresult>(Wait("cuEventSynchronize")); }
CUresult cuCtxSynchronize() { return static_cast<CUresult>(Wait("cuCtxSynchronize")); }
// Functions of HIP, because there is no stub library for HIP.
int hipStreamSynchronize(void*) { return Wait("hipStreamSynchronize"); }
int hipEventSynchronize(void*) { return Wait("hipEventSynchronize"); }
int hipDeviceSynchronize() { return Wait("hipDeviceSynchronize"); }
int hipMemcpy(void* to, const void* from, size_t bytes, int) {
  memmove(to, from, bytes);
  return Wait("hipMemcpy");
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  memmove(to, from, bytes);
  return Wait("cudaMemcpy");
}

CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr address, cuuint64_t value, unsigned) {
  const CUresult answer = Answer("cuStreamWriteValue64_v2");
  if (answer == CUDA_SUCCESS) Write({address, value});
  return answer;
}
// Breaks a capture of any thread, unless the calling thread has asked not to break captures.
CUresult cuMemHostRegister_v2(void*, size_t, unsigned) {
  if (IsCapturing() && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    capture_is_broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return Answer("cuMemHostRegister_v2");
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(host);
  return Answer("cuMemHostGetDevicePointer_v2");
}
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = IsCapturing() ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return Answer("cuStreamIsCapturing");
}
CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t* id, CUgraph*,
                                   const CUgraphNode**, size_t*) {
  *id = captures;
  return Answer("cuStreamGetCaptureInfo_v2");
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  ++captures;
  capturing = new Graph;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(capturing);
  capturing = nullptr;
  return capture_is_broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new Graph(*ToGraph(graph)));
  return cudaSuccess;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = reinterpret_cast<CUgraphExec>(new Graph(*ToGraph(graph)));
  return CUDA_SUCCESS;
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  *clone = reinterpret_cast<cudaGraph_t>(new Graph(*ToGraph(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  *ToGraph(executable) = *ToGraph(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t*, cudaGraph_t graph, const cudaGraphNode_t*,
                                       size_t, cudaGraph_t child) {
  for (const Written& written : *ToGraph(child)) ToGraph(graph)->push_back(written);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  if (Is("STUB_FAIL", "cudaGraphLaunch")) return cudaErrorInvalidValue;
  for (const Written& written : *ToGraph(executable)) Write(written);
  return cudaSuccess;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return static_cast<CUresult>(cudaGraphLaunch(executable, stream));
}
int hipGraphLaunch(void* executable, void*) {
  return cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable), nullptr);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete ToGraph(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete ToGraph(executable);
  return cudaSuccess;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = kFree || contexts_pushed.empty() ? DeviceContext(0) : contexts_pushed.back();
  return Answer("cuCtxGetCurrent");
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  const CUresult answer = Answer("cuCtxPushCurrent_v2");
  if (answer == CUDA_SUCCESS) contexts_pushed.push_back(context);
  return answer;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  *context = contexts_pushed.back();
  contexts_pushed.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = DeviceContext(device);
  return Answer("cuDevicePrimaryCtxRetain");
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }

}  // extern "C"
