// SPDX-License-Identifier: Apache-2.0
// The wrappers of the functions that capture, copy, launch and destroy CUDA graphs, and of HIP's.
// Functions that take and return only handles share a wrapper for each effect. Their declarations
// differ between versions of CUDA, but every ABI passes a pointer or a flag in a register. So each
// wrapper passes on as many registers as the longest variant has.
#include "interpose/calls/observe.h"
#include "interpose/real.h"
#include "interpose/record/graph_launches.h"

namespace rollcall {

using Register = uintptr_t;

namespace {

using Function3 = int (*)(Register, Register, Register);
using Function5 = int (*)(Register, Register, Register, Register, Register);
using Function6 = int (*)(Register, Register, Register, Register, Register, Register);

const void* Handle(Register value) { return reinterpret_cast<const void*>(value); }

// The handle that a function has stored at `where`.
const void* Stored(Register where) {
  return where == 0 ? nullptr : *reinterpret_cast<const void* const*>(where);
}

// Calls the real function with this thread marked as inside, so that nested calls are not recorded.
// Runs `then` if the function succeeded.
template <typename Function, typename Then, typename... Args>
int Observe(Fn fn, Function, const Then& then, Args... args) {
  const auto real = reinterpret_cast<Function>(Real(fn));
  if (real == nullptr) return kLibraryMissing;
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  const InsideCall inside(thread);
  const int result = real(args...);
  if (result == 0) then();
  return result;
}

// Counts captures from the start, before recording begins: the first NCCL call may be a captured
// one.
int BeginCapture(Fn fn, Register a, Register b, Register c, Register d, Register e, Register f) {
  const auto real = reinterpret_cast<Function6>(Real(fn));
  if (real == nullptr) return kLibraryMissing;
  const int result = real(a, b, c, d, e, f);
  if (result == 0 && !this_thread.inside) RecordCaptureBegin();
  return result;
}

int EndCapture(Fn fn, Register stream, Register graph, Register c) {
  const auto real = reinterpret_cast<Function3>(Real(fn));
  if (real == nullptr) return kLibraryMissing;
  if (this_thread.inside) return real(stream, graph, c);
  const uint64_t capture = Recording() ? QueryCapture(nullptr, reinterpret_cast<void*>(stream)) : 0;
  const int result = real(stream, graph, c);
  RecordCaptureEnd(capture, result == 0 ? Stored(graph) : nullptr);
  return result;
}

int CopyGraph(Fn fn, Register to, Register from, Register c, Register d, Register e) {
  return Observe(
      fn, Function5{}, [=] { RecordGraphCopy(Handle(from), Stored(to)); }, to, from, c, d, e);
}

int UpdateGraph(Fn fn, Register to, Register from, Register c, Register d, Register e) {
  return Observe(
      fn, Function5{}, [=] { RecordGraphCopy(Handle(from), Handle(to)); }, to, from, c, d, e);
}

int AddChild(Fn fn, Register node, Register graph, Register c, Register d, Register child) {
  return Observe(
      fn, Function5{}, [=] { RecordGraphChild(Handle(graph), Handle(child)); }, node, graph, c, d,
      child);
}

int Destroy(Fn fn, Register handle, Register b, Register c) {
  return Observe(fn, Function3{}, [=] { RecordGraphDestroy(Handle(handle)); }, handle, b, c);
}

int Launch(Fn fn, Register executable, Register on, Register c) {
  const auto real = reinterpret_cast<Function3>(Real(fn));
  if (real == nullptr) return kLibraryMissing;
  ThreadState* thread = &this_thread;
  CallGraph* graph = thread->inside || !Recording() ? nullptr : FindGraph(Handle(executable));
  const LocalComm* comm = graph == nullptr ? nullptr : FirstComm(graph);
  if (comm == nullptr) return real(executable, on, c);
  void* stream = reinterpret_cast<void*>(on);
  const InsideCall inside(thread);
  const Blocked blocked(thread, Op::kGraphLaunch, comm, stream, Now());
  const uint64_t capture = FindCapture(comm, stream);
  if (capture > kOffLimits) {
    const int result = real(executable, on, c);
    CallGraph* into = result == 0 ? CaptureGraph(capture) : nullptr;
    if (into != nullptr) LaunchIntoCapture(graph, into);
    return result;
  }
  Launched launched;
  BeginLaunch(thread, graph, stream, &launched);
  const int result = real(executable, on, c);
  EndLaunch(launched, stream, result == 0);
  return result;
}

}  // namespace
}  // namespace rollcall

// Defines the exported function `symbol`, which passes on as many registers as the macro's number.
#define WRAP3(symbol, what)                                                                        \
  extern "C" ROLLCALL_EXPORT int Rollcall_##symbol(Register, Register, Register) __asm__(#symbol); \
  int Rollcall_##symbol(Register a, Register b, Register c) {                                      \
    return rollcall::what(rollcall::Fn::k_##symbol, a, b, c);                                      \
  }
#define WRAP5(symbol, what)                                                                \
  extern "C" ROLLCALL_EXPORT int Rollcall_##symbol(Register, Register, Register, Register, \
                                                   Register) __asm__(#symbol);             \
  int Rollcall_##symbol(Register a, Register b, Register c, Register d, Register e) {      \
    return rollcall::what(rollcall::Fn::k_##symbol, a, b, c, d, e);                        \
  }
#define WRAP6(symbol, what)                                                                       \
  extern "C" ROLLCALL_EXPORT int Rollcall_##symbol(Register, Register, Register, Register,        \
                                                   Register, Register) __asm__(#symbol);          \
  int Rollcall_##symbol(Register a, Register b, Register c, Register d, Register e, Register f) { \
    return rollcall::what(rollcall::Fn::k_##symbol, a, b, c, d, e, f);                            \
  }

using rollcall::Register;

WRAP6(cudaStreamBeginCapture, BeginCapture)
WRAP6(cudaStreamBeginCapture_ptsz, BeginCapture)
WRAP6(cudaStreamBeginCaptureToGraph, BeginCapture)
WRAP6(cudaStreamBeginCaptureToGraph_ptsz, BeginCapture)
WRAP6(cuStreamBeginCapture_v2, BeginCapture)
WRAP6(cuStreamBeginCapture_v2_ptsz, BeginCapture)
WRAP6(cuStreamBeginCaptureToGraph, BeginCapture)
WRAP6(cuStreamBeginCaptureToGraph_ptsz, BeginCapture)
WRAP6(hipStreamBeginCapture, BeginCapture)
WRAP3(cudaStreamEndCapture, EndCapture)
WRAP3(cudaStreamEndCapture_ptsz, EndCapture)
WRAP3(cuStreamEndCapture, EndCapture)
WRAP3(cuStreamEndCapture_ptsz, EndCapture)
WRAP3(hipStreamEndCapture, EndCapture)
WRAP5(cudaGraphInstantiate, CopyGraph)
WRAP5(cudaGraphInstantiateWithFlags, CopyGraph)
WRAP5(cudaGraphInstantiateWithParams, CopyGraph)
WRAP5(cudaGraphInstantiateWithParams_ptsz, CopyGraph)
WRAP5(cuGraphInstantiate, CopyGraph)
WRAP5(cuGraphInstantiate_v2, CopyGraph)
WRAP5(cuGraphInstantiateWithFlags, CopyGraph)
WRAP5(cuGraphInstantiateWithParams, CopyGraph)
WRAP5(cuGraphInstantiateWithParams_ptsz, CopyGraph)
WRAP5(hipGraphInstantiate, CopyGraph)
WRAP5(hipGraphInstantiateWithFlags, CopyGraph)
WRAP5(cudaGraphClone, CopyGraph)
WRAP5(cuGraphClone, CopyGraph)
WRAP5(hipGraphClone, CopyGraph)
WRAP5(cudaGraphExecUpdate, UpdateGraph)
WRAP5(cuGraphExecUpdate, UpdateGraph)
WRAP5(cuGraphExecUpdate_v2, UpdateGraph)
WRAP5(hipGraphExecUpdate, UpdateGraph)
WRAP5(cudaGraphAddChildGraphNode, AddChild)
WRAP5(cuGraphAddChildGraphNode, AddChild)
WRAP5(hipGraphAddChildGraphNode, AddChild)
WRAP3(cudaGraphDestroy, Destroy)
WRAP3(cuGraphDestroy, Destroy)
WRAP3(hipGraphDestroy, Destroy)
WRAP3(cudaGraphExecDestroy, Destroy)
WRAP3(cuGraphExecDestroy, Destroy)
WRAP3(hipGraphExecDestroy, Destroy)
WRAP3(cudaGraphLaunch, Launch)
WRAP3(cudaGraphLaunch_ptsz, Launch)
WRAP3(cuGraphLaunch, Launch)
WRAP3(cuGraphLaunch_ptsz, Launch)
WRAP3(hipGraphLaunch, Launch)
