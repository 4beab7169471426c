// SPDX-License-Identifier: Apache-2.0
// The wrappers of one-sided calls. The nth signal of a rank to a peer, with one index and context,
// matches the peer's nth wait for that rank.
#include "interpose/calls/observe.h"
#include "interpose/calls/side_channel.h"
#include "interpose/real.h"

using rollcall::CallInfo;
using rollcall::kNoDtype;
using rollcall::kNoReduction;
using rollcall::ObserveCall;
using rollcall::Op;
using rollcall::SignalChannel;

#define CALLER __builtin_return_address(0)

namespace rollcall {
namespace {

// A wait for more signals of one peer is recorded as a wait for this many.
constexpr int kMostSignals = 64;

CallInfo WaitCallInfo(int peer, cudaStream_t stream) {
  return {Op::kWaitSignal, kNoDtype, kNoReduction, peer, 0, stream};
}

// Records the waits of one call that waits for many signals. ObserveCall() has recorded the first
// one; this function records the others after NCCL has accepted the call.
void RecordWaits(const ncclWaitSignalDesc_t& wanted, bool first_is_recorded, ncclComm_t comm,
                 cudaStream_t stream, const void* caller) {
  ThreadState* thread = &this_thread;
  const ncclComm_t handle = SignalChannel(comm, wanted.sigIdx, wanted.ctx);
  LocalComm* channel = handle == comm ? nullptr : FindComm(handle);
  if (channel == nullptr) return;
  const InsideCall inside(thread);
  const bool grouped = thread->group_depth > 0 && JoinGroup(thread, channel, stream) != nullptr;
  const uint64_t capture = FindCapture(channel, stream);
  const int signals = wanted.opCnt < kMostSignals ? wanted.opCnt : kMostSignals;
  for (int i = first_is_recorded ? 1 : 0; i < signals; ++i) {
    const CallInfo info = WaitCallInfo(wanted.peer, stream);
    if (capture > kOffLimits) {
      EndCaptured(thread, channel, info, BeginCaptured(thread, channel, info, caller, capture),
                  ncclSuccess);
      continue;
    }
    const OpenRecord open = BeginRecord(thread, channel, info, Now(), caller, grouped);
    EndRecord(channel, open, ncclSuccess, grouped);
  }
}

int FirstWithSignals(int count, const ncclWaitSignalDesc_t* all) {
  for (int i = 0; all != nullptr && i < count; ++i) {
    if (all[i].opCnt > 0) return i;
  }
  return -1;
}

}  // namespace
}  // namespace rollcall

extern "C" ROLLCALL_EXPORT ncclResult_t ncclPutSignal(const void* localbuff, size_t count,
                                                      ncclDataType_t datatype, int peer,
                                                      ncclWindow_t peerWin, size_t peerWinOffset,
                                                      int sigIdx, int ctx, unsigned int flags,
                                                      ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kPutSignal, kNoDtype, kNoReduction, peer, 0, stream};
  return ObserveCall(ROLLCALL_REAL(ncclPutSignal), SignalChannel(comm, sigIdx, ctx), info, CALLER,
                     localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags,
                     comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclSignal(int peer, int sigIdx, int ctx,
                                                   unsigned int flags, ncclComm_t comm,
                                                   cudaStream_t stream) {
  const CallInfo info = {Op::kSignal, kNoDtype, kNoReduction, peer, 0, stream};
  return ObserveCall(ROLLCALL_REAL(ncclSignal), SignalChannel(comm, sigIdx, ctx), info, CALLER,
                     peer, sigIdx, ctx, flags, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs,
                                                       ncclComm_t comm, cudaStream_t stream) {
  auto* real = ROLLCALL_REAL(ncclWaitSignal);
  if (real == nullptr) return ncclSystemError;
  const int first = rollcall::FirstWithSignals(nDesc, signalDescs);
  if (first < 0) return real(nDesc, signalDescs, comm, stream);
  const ncclWaitSignalDesc_t& wanted = signalDescs[first];
  const ncclResult_t result = ObserveCall(real, SignalChannel(comm, wanted.sigIdx, wanted.ctx),
                                          rollcall::WaitCallInfo(wanted.peer, stream), CALLER,
                                          nDesc, signalDescs, comm, stream);
  if (rollcall::this_thread.inside || rollcall::IsError(result)) return result;
  for (int i = first; i < nDesc; ++i) {
    rollcall::RecordWaits(signalDescs[i], i == first, comm, stream, CALLER);
  }
  return result;
}
