// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 that moves no data. Tests control it through the environment, which
// it reads at each call:
//
//   STUB_FAIL=ncclX       ncclX returns ncclInvalidArgument
//   STUB_LATE=ncclX       ncclX returns ncclInProgress
//   STUB_BLOCK=ncclX      ncclX waits until a test has opened and closed the FIFO STUB_FIFO, and
//                         then answers as the other variables say
//   STUB_UNIQUE_ID=text   the id that ncclGetUniqueId gives; without it each id is new
//   STUB_CALL_MEANWHILE=1 another thread makes a call while ncclCommGetAsyncError answers
//   STUB_IN_PROGRESS=1    new communicators are not ready yet
//
// A program that has the function stub_created() learns of each new communicator before it is
// returned, as NCCL's profiler plugin does.
//
// Every call has its p-twin. As NCCL does, it calls some of its own public
// functions, and gives a new communicator the address of one that has ended.
// Compiled with STUB_OLD it is an NCCL of before ncclCommShrink and has no twins. Compiled with
// STUB_FREE it does not read the environment, so its calls cost nothing, and benchmarks measure
// only the cost of the library.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "interpose/nccl_api.h"

extern "C" __attribute__((weak)) void stub_created(int rank, int size);

namespace {

struct Object {
  int rank, size, device;
};
Object objects[2048];
int free_objects[2048];
int free_count = 0;
std::atomic<int> next_object{0};  // threads of a benchmark create communicators at once

ncclComm_t NewObject(int rank, int size) {
  const int index = free_count > 0 ? free_objects[--free_count] : next_object++;
  objects[index] = {rank, size, 0};
  if (stub_created != nullptr) stub_created(rank, size);
  return reinterpret_cast<ncclComm_t>(&objects[index]);
}

const Object* ToObject(ncclComm_t comm) { return reinterpret_cast<const Object*>(comm); }

ncclResult_t FreeObject(ncclComm_t comm) {
  free_objects[free_count++] = static_cast<int>(ToObject(comm) - objects);
  return ncclSuccess;
}

#ifdef STUB_FREE
constexpr bool Is(const char*, const char*) { return false; }
#else
bool Is(const char* variable, const char* name) {
  const char* value = getenv(variable);
  return value != nullptr && strcmp(value, name) == 0;
}
#endif

void WaitWhereToldTo(const char* name) {
  if (!Is("STUB_BLOCK", name)) return;
  const int fifo = open(getenv("STUB_FIFO"), O_RDONLY);
  char byte;
  while (read(fifo, &byte, 1) > 0) {
  }
  close(fifo);
}

ncclResult_t Answer(const char* name) {
  WaitWhereToldTo(name);
  if (Is("STUB_FAIL", name)) return ncclInvalidArgument;
  if (Is("STUB_LATE", name)) return ncclInProgress;
  return ncclSuccess;
}

ncclResult_t Created() { return Is("STUB_IN_PROGRESS", "1") ? ncclInProgress : ncclSuccess; }

}  // namespace

#ifdef STUB_OLD
#define STUB(name, parameters, ...) \
  extern "C" ncclResult_t name parameters { __VA_ARGS__ }
#else
#define STUB(name, parameters, ...)                          \
  extern "C" ncclResult_t p##name parameters { __VA_ARGS__ } \
  extern "C" __attribute__((weak, alias("p" #name))) ncclResult_t name parameters;
#endif
#define ANSWER(name)                         \
  const ncclResult_t answer = Answer(#name); \
  if (answer != ncclSuccess) return answer;
#define CALL(name, ...) STUB(name, (__VA_ARGS__), return Answer(#name);)

using Type = ncclDataType_t;
using Stream = cudaStream_t;

CALL(ncclAllReduce, const void*, void*, size_t, Type, ncclRedOp_t, ncclComm_t, Stream)
CALL(ncclAllGather, const void*, void*, size_t, Type, ncclComm_t, Stream)
CALL(ncclReduceScatter, const void*, void*, size_t, Type, ncclRedOp_t, ncclComm_t, Stream)
CALL(ncclReduce, const void*, void*, size_t, Type, ncclRedOp_t, int, ncclComm_t, Stream)
CALL(ncclBroadcast, const void*, void*, size_t, Type, int, ncclComm_t, Stream)
STUB(ncclBcast, (void* buffer, size_t count, Type type, int root, ncclComm_t comm, Stream stream),
     return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);)
CALL(ncclAlltoAll, const void*, void*, size_t, Type, ncclComm_t, Stream)
CALL(ncclGather, const void*, void*, size_t, Type, int, ncclComm_t, Stream)
CALL(ncclScatter, const void*, void*, size_t, Type, int, ncclComm_t, Stream)
CALL(ncclSend, const void*, size_t, Type, int, ncclComm_t, Stream)
CALL(ncclRecv, void*, size_t, Type, int, ncclComm_t, Stream)

extern "C" ncclResult_t ncclGroupStart();
extern "C" ncclResult_t ncclGroupEnd();
CALL(ncclGroupStart)
CALL(ncclGroupEnd)
CALL(ncclGroupSimulateEnd, ncclSimInfo_t*)

STUB(ncclGetVersion, (int* version), *version = NCCL_VERSION_CODE; return ncclSuccess;)
STUB(ncclGetUniqueId, (ncclUniqueId * id), {
  static std::atomic<int> made{0};
  ANSWER(ncclGetUniqueId)
  memset(id, 0, sizeof(*id));
  const char* given = getenv("STUB_UNIQUE_ID");
  snprintf(id->internal, sizeof(id->internal), "%s/%d", given == nullptr ? "" : given,
           given == nullptr ? static_cast<int>(getpid()) * 1000 + made++ : 0);
  return ncclSuccess;
})

STUB(ncclCommInitRank, (ncclComm_t * comm, int size, ncclUniqueId, int rank), {
  ANSWER(ncclCommInitRank)
  *comm = NewObject(rank, size);
  return Created();
})
STUB(ncclCommInitRankConfig,
     (ncclComm_t * comm, int size, ncclUniqueId id, int rank, ncclConfig_t*),
     return ncclCommInitRank(comm, size, id, rank);)
STUB(ncclCommInitAll, (ncclComm_t * comms, int devices, const int*), {
  ANSWER(ncclCommInitAll)
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclGroupStart();
  for (int rank = 0; rank < devices; ++rank) {
    ncclCommInitRank(&comms[rank], devices, id, rank);
    objects[ToObject(comms[rank]) - objects].device = rank;
  }
  return ncclGroupEnd();
})
STUB(ncclCommSplit, (ncclComm_t comm, int color, int, ncclComm_t* child, ncclConfig_t*), {
  ANSWER(ncclCommSplit)
  *child = color == NCCL_SPLIT_NOCOLOR
               ? nullptr
               : NewObject(ToObject(comm)->rank / 2, (ToObject(comm)->size + 1) / 2);
  return Created();
})
#ifndef STUB_OLD
STUB(ncclCommInitRankScalable,
     (ncclComm_t * comm, int size, int rank, int, ncclUniqueId* ids, ncclConfig_t*),
     return ncclCommInitRank(comm, size, *ids, rank);)
STUB(ncclCommShrink,
     (ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t*, int), {
       ANSWER(ncclCommShrink)
       int rank = ToObject(comm)->rank;
       for (int i = 0; i < count; ++i) rank -= excluded[i] < ToObject(comm)->rank;
       *child = NewObject(rank, ToObject(comm)->size - count);
       return Created();
     })
CALL(ncclCommRevoke, ncclComm_t, int)
CALL(ncclAllReduceConfig, const void*, void*, size_t, Type, ncclRedOp_t, ncclComm_t, Stream,
     const ncclCollConfig_t*)
CALL(ncclAllToAllv, const void*, const size_t*, const size_t*, void*, const size_t*, const size_t*,
     Type, ncclComm_t, Stream)
CALL(mscclRunAlgo, const void*, const size_t*, const size_t*, void*, const size_t*, const size_t*,
     size_t, Type, int, int, ncclRedOp_t, int, ncclComm_t, Stream)
CALL(ncclCommWindowRegister, ncclComm_t, void*, size_t, ncclWindow_t*, int)
CALL(ncclCommWindowDeregister, ncclComm_t, ncclWindow_t)
CALL(ncclDevCommCreate, ncclComm_t, const void*, void*)
CALL(ncclPutSignal, const void*, size_t, Type, int, ncclWindow_t, size_t, int, int, unsigned int,
     ncclComm_t, Stream)
CALL(ncclSignal, int, int, int, unsigned int, ncclComm_t, Stream)
CALL(ncclWaitSignal, int, ncclWaitSignalDesc_t*, ncclComm_t, Stream)
CALL(ncclMemAlloc, void**, size_t)
STUB(ncclCommGetUniqueId, (ncclComm_t, ncclUniqueId* id), {
  ANSWER(ncclCommGetUniqueId)
  return ncclGetUniqueId(id);
})
STUB(ncclCommGrow,
     (ncclComm_t comm, int size, const ncclUniqueId*, int rank, ncclComm_t* grown, ncclConfig_t*), {
       ANSWER(ncclCommGrow)
       *grown = NewObject(comm == nullptr ? rank : ToObject(comm)->rank, size);
       return ncclSuccess;
     })
#endif
STUB(ncclCommUserRank, (const ncclComm_t comm, int* rank), *rank = ToObject(comm)->rank;
     return ncclSuccess;)
STUB(ncclCommCount, (const ncclComm_t comm, int* size), *size = ToObject(comm)->size;
     return ncclSuccess;)
STUB(ncclCommCuDevice, (const ncclComm_t comm, int* device), *device = ToObject(comm)->device;
     return ncclSuccess;)
STUB(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* error), {
  *error = Is("STUB_ASYNC_ERROR", "1") ? ncclRemoteError : Created();
  if (Is("STUB_CALL_MEANWHILE", "1")) {
    std::thread([comm] {
      ncclAllReduce(nullptr, nullptr, 8, ncclFloat, ncclSum, comm, nullptr);
    }).join();
  }
  WaitWhereToldTo("ncclCommGetAsyncError");
  return ncclSuccess;
})
CALL(ncclCommFinalize, ncclComm_t)
STUB(ncclCommDestroy, (ncclComm_t comm), ANSWER(ncclCommDestroy) return FreeObject(comm);)
STUB(ncclCommAbort, (ncclComm_t comm), ANSWER(ncclCommAbort) return FreeObject(comm);)
