// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: capture into graphs, and their launch.
//
// A graph is a list of captured work. A launch replays the list in its order. A
// program cannot build or edit a graph node by node.
#include <map>
#include <mutex>

#include "tests/sim/cudart/runtime.h"
#include "tests/sim/made_once.h"

namespace {

namespace sim = rollcall::sim;
using sim::runtime::Note;
using sim::runtime::OnStream;

// All graphs by handle, both captured and instantiated.
struct Graphs {
  std::mutex mutex;
  std::map<const void*, sim::GraphRef> all;
  uintptr_t next = 1;
};

Graphs& AllGraphs() { return sim::MadeOnce<Graphs>(); }

void* Add(sim::GraphRef graph) {
  std::lock_guard lock(AllGraphs().mutex);
  void* handle = reinterpret_cast<void*>(AllGraphs().next++ * 16);
  AllGraphs().all[handle] = std::move(graph);
  return handle;
}

sim::GraphRef Find(const void* handle) {
  std::lock_guard lock(AllGraphs().mutex);
  const auto found = AllGraphs().all.find(handle);
  return found == AllGraphs().all.end() ? nullptr : found->second;
}

cudaError_t Drop(const void* handle) {
  std::lock_guard lock(AllGraphs().mutex);
  return Note(AllGraphs().all.erase(handle) == 1 ? cudaSuccess : cudaErrorInvalidValue);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return OnStream(stream, sim::BeginCapture);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return OnStream(stream, [=](const sim::StreamRef& on) {
    sim::GraphRef captured;
    const CUresult ended = sim::EndCapture(on, &captured);
    *graph = ended == CUDA_SUCCESS ? static_cast<cudaGraph_t>(Add(captured)) : nullptr;
    return ended;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return OnStream(stream, [=](const sim::StreamRef& on) {
    return sim::CaptureStatus(on, reinterpret_cast<CUstreamCaptureStatus*>(status));
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*,
                                 char*, size_t) {
#endif
  const sim::GraphRef found = Find(graph);
  if (found == nullptr) return Note(cudaErrorInvalidValue);
  *executable = static_cast<cudaGraphExec_t>(Add(found));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  const sim::GraphRef found = Find(graph);
  if (found == nullptr) return Note(cudaErrorInvalidValue);
  *executable = static_cast<cudaGraphExec_t>(Add(found));
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const sim::GraphRef found = Find(executable);
  if (found == nullptr) return Note(cudaErrorInvalidValue);
  return OnStream(stream, [&](const sim::StreamRef& on) { return sim::LaunchGraph(found, on); });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return Drop(graph); }

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return Drop(executable); }

}  // extern "C"
