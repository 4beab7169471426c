// SPDX-License-Identifier: Apache-2.0
// The wrappers of collectives, and of sends and receives. observe.h has what each of them does
// around the real function.
#include "interpose/calls/observe.h"
#include "interpose/real.h"
#include "interpose/record/call_tags.h"

using rollcall::CallInfo;
using rollcall::kNoPeer;
using rollcall::kNoReduction;
using rollcall::NoteTag;
using rollcall::ObserveCall;
using rollcall::Op;

namespace {

// A number from ncclRedOpCreatePreMulSum on names an operator of one communicator on one rank.
// Ranks can be compared only in whether the operator is dynamic.
uint8_t Reduction(ncclRedOp_t op) {
  return static_cast<int>(op) < static_cast<int>(ncclNumOps) ? static_cast<uint8_t>(op)
                                                             : rollcall::kDynamicReduction;
}

uint8_t Dtype(ncclDataType_t dtype) { return static_cast<uint8_t>(dtype); }

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff,
                                                      size_t count, ncclDataType_t datatype,
                                                      ncclRedOp_t op, ncclComm_t comm,
                                                      cudaStream_t stream) {
  const CallInfo info = {Op::kAllReduce, Dtype(datatype), Reduction(op), kNoPeer, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAllReduce), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, op, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff,
                                                      size_t sendcount, ncclDataType_t datatype,
                                                      ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kAllGather, Dtype(datatype), kNoReduction, kNoPeer, sendcount, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAllGather), comm, info, CALLER, sendbuff, recvbuff,
                     sendcount, datatype, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff,
                                                          size_t recvcount, ncclDataType_t datatype,
                                                          ncclRedOp_t op, ncclComm_t comm,
                                                          cudaStream_t stream) {
  const CallInfo info = {Op::kReduceScatter, Dtype(datatype), Reduction(op), kNoPeer,
                         recvcount,          stream};
  return ObserveCall(ROLLCALL_REAL(ncclReduceScatter), comm, info, CALLER, sendbuff, recvbuff,
                     recvcount, datatype, op, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff,
                                                   size_t count, ncclDataType_t datatype,
                                                   ncclRedOp_t op, int root, ncclComm_t comm,
                                                   cudaStream_t stream) {
  const CallInfo info = {Op::kReduce, Dtype(datatype), Reduction(op), root, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclReduce), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, op, root, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff,
                                                      size_t count, ncclDataType_t datatype,
                                                      int root, ncclComm_t comm,
                                                      cudaStream_t stream) {
  const CallInfo info = {Op::kBroadcast, Dtype(datatype), kNoReduction, root, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclBroadcast), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, root, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype,
                                                  int root, ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kBcast, Dtype(datatype), kNoReduction, root, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclBcast), comm, info, CALLER, buff, count, datatype, root,
                     comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff,
                                                     size_t count, ncclDataType_t datatype,
                                                     ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kAlltoAll, Dtype(datatype), kNoReduction, kNoPeer, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAlltoAll), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGather(const void* sendbuff, void* recvbuff,
                                                   size_t count, ncclDataType_t datatype, int root,
                                                   ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kGather, Dtype(datatype), kNoReduction, root, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclGather), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, root, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff,
                                                    size_t count, ncclDataType_t datatype, int root,
                                                    ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kScatter, Dtype(datatype), kNoReduction, root, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclScatter), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, root, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclSend(const void* sendbuff, size_t count,
                                                 ncclDataType_t datatype, int peer, ncclComm_t comm,
                                                 cudaStream_t stream) {
  const CallInfo info = {Op::kSend, Dtype(datatype), kNoReduction, peer, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclSend), comm, info, CALLER, sendbuff, count, datatype, peer,
                     comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclRecv(void* recvbuff, size_t count,
                                                 ncclDataType_t datatype, int peer, ncclComm_t comm,
                                                 cudaStream_t stream) {
  const CallInfo info = {Op::kRecv, Dtype(datatype), kNoReduction, peer, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclRecv), comm, info, CALLER, recvbuff, count, datatype, peer,
                     comm, stream);
}

// The variants of NCCL 2.32 that take a configuration for the call.

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAllReduceConfig(const void* sendbuff, void* recvbuff,
                                                            size_t count, ncclDataType_t datatype,
                                                            ncclRedOp_t op, ncclComm_t comm,
                                                            cudaStream_t stream,
                                                            const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kAllReduce, Dtype(datatype), Reduction(op), kNoPeer, count, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclAllReduceConfig), comm, info, CALLER, sendbuff, recvbuff,
                     count, datatype, op, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAllGatherConfig(const void* sendbuff, void* recvbuff,
                                                            size_t sendcount,
                                                            ncclDataType_t datatype,
                                                            ncclComm_t comm, cudaStream_t stream,
                                                            const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kAllGather, Dtype(datatype), kNoReduction, kNoPeer, sendcount, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclAllGatherConfig), comm, info, CALLER, sendbuff, recvbuff,
                     sendcount, datatype, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclReduceScatterConfig(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
    ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kReduceScatter, Dtype(datatype), Reduction(op), kNoPeer,
                         recvcount,          stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclReduceScatterConfig), comm, info, CALLER, sendbuff, recvbuff,
                     recvcount, datatype, op, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclReduceConfig(const void* sendbuff, void* recvbuff,
                                                         size_t count, ncclDataType_t datatype,
                                                         ncclRedOp_t op, int root, ncclComm_t comm,
                                                         cudaStream_t stream,
                                                         const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kReduce, Dtype(datatype), Reduction(op), root, count, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclReduceConfig), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, op, root, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclBroadcastConfig(const void* sendbuff, void* recvbuff,
                                                            size_t count, ncclDataType_t datatype,
                                                            int root, ncclComm_t comm,
                                                            cudaStream_t stream,
                                                            const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kBroadcast, Dtype(datatype), kNoReduction, root, count, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclBroadcastConfig), comm, info, CALLER, sendbuff, recvbuff,
                     count, datatype, root, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAlltoAllConfig(const void* sendbuff, void* recvbuff,
                                                           size_t count, ncclDataType_t datatype,
                                                           ncclComm_t comm, cudaStream_t stream,
                                                           const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kAlltoAll, Dtype(datatype), kNoReduction, kNoPeer, count, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclAlltoAllConfig), comm, info, CALLER, sendbuff, recvbuff,
                     count, datatype, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGatherConfig(const void* sendbuff, void* recvbuff,
                                                         size_t count, ncclDataType_t datatype,
                                                         int root, ncclComm_t comm,
                                                         cudaStream_t stream,
                                                         const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kGather, Dtype(datatype), kNoReduction, root, count, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclGatherConfig), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, root, comm, stream, config);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclScatterConfig(const void* sendbuff, void* recvbuff,
                                                          size_t count, ncclDataType_t datatype,
                                                          int root, ncclComm_t comm,
                                                          cudaStream_t stream,
                                                          const ncclCollConfig_t* config) {
  const CallInfo info = {Op::kScatter, Dtype(datatype), kNoReduction, root, count, stream};
  NoteTag(config);
  return ObserveCall(ROLLCALL_REAL(ncclScatterConfig), comm, info, CALLER, sendbuff, recvbuff,
                     count, datatype, root, comm, stream, config);
}

// Functions that only RCCL has.

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAllToAll(const void* sendbuff, void* recvbuff,
                                                     size_t count, ncclDataType_t datatype,
                                                     ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kAlltoAll, Dtype(datatype), kNoReduction, kNoPeer, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAllToAll), comm, info, CALLER, sendbuff, recvbuff, count,
                     datatype, comm, stream);
}

// Counts may differ between ranks, so the record has none.
extern "C" ROLLCALL_EXPORT ncclResult_t
ncclAllToAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
              const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype,
              ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kAlltoAllv, Dtype(datatype), kNoReduction, kNoPeer, 0, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAllToAllv), comm, info, CALLER, sendbuff, sendcounts,
                     sdispls, recvbuff, recvcounts, rdispls, datatype, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t
ncclAlltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
              const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype,
              ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kAlltoAllv, Dtype(datatype), kNoReduction, kNoPeer, 0, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAlltoAllv), comm, info, CALLER, sendbuff, sendcounts,
                     sdispls, recvbuff, recvcounts, rdispls, datatype, comm, stream);
}

// The algorithm's file defines the collective. The caller sets root and peer even if it has none,
// so the record has neither.
extern "C" ROLLCALL_EXPORT ncclResult_t mscclRunAlgo(
    const void* sendBuff, const size_t* sendCounts, const size_t* sDisPls, void* recvBuff,
    const size_t* recvCounts, const size_t* rDisPls, size_t count, ncclDataType_t dataType,
    int root, int peer, ncclRedOp_t op, int mscclAlgoHandle, ncclComm_t comm, cudaStream_t stream) {
  const CallInfo info = {Op::kmscclRunAlgo, Dtype(dataType), Reduction(op), kNoPeer, count, stream};
  return ObserveCall(ROLLCALL_REAL(mscclRunAlgo), comm, info, CALLER, sendBuff, sendCounts, sDisPls,
                     recvBuff, recvCounts, rDisPls, count, dataType, root, peer, op,
                     mscclAlgoHandle, comm, stream);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclAllReduceWithBias(const void* sendbuff, void* recvbuff,
                                                              size_t count, ncclDataType_t datatype,
                                                              ncclRedOp_t op, ncclComm_t comm,
                                                              cudaStream_t stream,
                                                              const void* acc) {
  const CallInfo info = {Op::kAllReduce, Dtype(datatype), Reduction(op), kNoPeer, count, stream};
  return ObserveCall(ROLLCALL_REAL(ncclAllReduceWithBias), comm, info, CALLER, sendbuff, recvbuff,
                     count, datatype, op, comm, stream, acc);
}
