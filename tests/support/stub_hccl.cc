// SPDX-License-Identifier: Apache-2.0
// A libhccl.so for tests: HCCL's functions, with nothing behind them. The function whose name is in
// STUB_ENDS_IN ends the process, where a real one would wait.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "interpose/hccl_api.h"

namespace {

int Call(const char* name) {
  const char* end = getenv("STUB_ENDS_IN");
  if (end != nullptr && strcmp(end, name) == 0) _exit(0);
  return 0;
}

int Make(const char* name, uint32_t ranks, void** comm) {
  *comm = new uint32_t(ranks);
  return Call(name);
}

}  // namespace

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ENQUEUED(symbol, op, dtype, reduction, peer, count, parameters, arguments) \
  extern "C" int symbol(parameters) { return Call(#symbol); }
#include "interpose/hccl_calls.def"

extern "C" {
int HcclBatchSendRecv(HcclSendRecvItem*, uint32_t, void*, void*) {
  return Call("HcclBatchSendRecv");
}
int HcclGroupStart() { return Call("HcclGroupStart"); }
int HcclGroupEnd() { return Call("HcclGroupEnd"); }
int HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo*, uint32_t, void** comm) {
  return Make("HcclCommInitRootInfo", ranks, comm);
}
int HcclCommInitRootInfoConfig(uint32_t ranks, const HcclRootInfo*, uint32_t, const void*,
                               void** comm) {
  return Make("HcclCommInitRootInfoConfig", ranks, comm);
}
int HcclCommInitClusterInfo(const char*, uint32_t, void** comm) {
  return Make("HcclCommInitClusterInfo", 8, comm);
}
int HcclCommInitClusterInfoConfig(const char*, uint32_t, void*, void** comm) {
  return Make("HcclCommInitClusterInfoConfig", 8, comm);
}
int HcclCommInitAll(uint32_t ranks, int32_t*, void** comms) {
  for (uint32_t rank = 0; rank < ranks; ++rank) comms[rank] = new uint32_t(ranks);
  return Call("HcclCommInitAll");
}
int HcclCreateSubCommConfig(void**, uint32_t ranks, uint32_t*, uint64_t, uint32_t, void*,
                            void** created) {
  return Make("HcclCreateSubCommConfig", ranks, created);
}
int HcclGetRankSize(void* comm, uint32_t* size) {
  *size = *static_cast<uint32_t*>(comm);
  return 0;
}
int HcclCommDestroy(void*) { return Call("HcclCommDestroy"); }
int aclrtSynchronizeStream(void*) { return Call("aclrtSynchronizeStream"); }
int aclrtSynchronizeStreamWithTimeout(void*, int32_t) {
  return Call("aclrtSynchronizeStreamWithTimeout");
}
int aclrtSynchronizeEvent(void*) { return Call("aclrtSynchronizeEvent"); }
int aclrtSynchronizeDevice() { return Call("aclrtSynchronizeDevice"); }
}
