// SPDX-License-Identifier: Apache-2.0
// The public functions that put work on a stream.
#include <nccl.h>

#include "tests/sim/nccl/export.h"
#include "tests/sim/nccl/group.h"

using rollcall::sim::Call;
using rollcall::sim::Function;
using rollcall::sim::Submit;

namespace {

ncclResult_t Start(Function function, const void* send, void* recv, size_t count,
                   ncclDataType_t dtype, ncclRedOp_t op, int root, ncclComm_t comm,
                   cudaStream_t stream) {
  Call call;
  call.function = function;
  call.send = send;
  call.recv = recv;
  call.count = count;
  call.dtype = dtype;
  call.op = op;
  call.root = root;
  return Submit(comm, std::move(call), stream);
}

}  // namespace

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kAllReduce, send, recv, count, dtype, op, 0, comm, stream);
}
SIM_EXPORT(ncclAllReduce)

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                           ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kAllGather, send, recv, count, dtype, ncclSum, 0, comm, stream);
}
SIM_EXPORT(ncclAllGather)

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kReduceScatter, send, recv, count, dtype, op, 0, comm, stream);
}
SIM_EXPORT(ncclReduceScatter)

ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kReduce, send, recv, count, dtype, op, root, comm, stream);
}
SIM_EXPORT(ncclReduce)

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kBroadcast, send, recv, count, dtype, ncclSum, root, comm, stream);
}
SIM_EXPORT(ncclBroadcast)

// Calls the public function, as the real one does: an interposer sees both.
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t dtype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, dtype, root, comm, stream);
}
SIM_EXPORT(ncclBcast)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t count, ncclDataType_t dtype,
                          ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kAlltoAll, send, recv, count, dtype, ncclSum, 0, comm, stream);
}
SIM_EXPORT(ncclAlltoAll)

ncclResult_t ncclGather(const void* send, void* recv, size_t count, ncclDataType_t dtype, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kGather, send, recv, count, dtype, ncclSum, root, comm, stream);
}
SIM_EXPORT(ncclGather)

ncclResult_t ncclScatter(const void* send, void* recv, size_t count, ncclDataType_t dtype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kScatter, send, recv, count, dtype, ncclSum, root, comm, stream);
}
SIM_EXPORT(ncclScatter)
#endif

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t dtype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return Start(Function::kSend, send, nullptr, count, dtype, ncclSum, peer, comm, stream);
}
SIM_EXPORT(ncclSend)

ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return Start(Function::kRecv, nullptr, recv, count, dtype, ncclSum, peer, comm, stream);
}
SIM_EXPORT(ncclRecv)

ncclResult_t ncclGroupStart() {
  rollcall::sim::GroupStart();
  return ncclSuccess;
}
SIM_EXPORT(ncclGroupStart)

ncclResult_t ncclGroupEnd() { return rollcall::sim::GroupEnd(); }
SIM_EXPORT(ncclGroupEnd)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (info != nullptr) info->estimatedTime = 0;
  return rollcall::sim::GroupDrop();
}
SIM_EXPORT(ncclGroupSimulateEnd)
#endif
