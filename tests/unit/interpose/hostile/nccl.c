// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 for hostile programs: any thread may call it at any time, a signal may interrupt
// it, it neither locks nor allocates nor reads the environment, and it calls the program back.
#include <nccl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TWIN(name) __attribute__((weak, alias("p" #name)))

static atomic_int made;
static char objects[1 << 16];
static _Thread_local void (*callback)(void);

// Which of several copies of this library was called, as the build says.
#ifndef COPY
#define COPY 1
#endif

// Called inside each AllReduce of this thread.
void hostile_call_back(void (*function)(void)) { callback = function; }

ncclResult_t pncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  memset(id, 0, sizeof(*id));
  const int number = atomic_fetch_add(&made, 1) + 1, pid = getpid();
  memcpy(id->internal, &number, sizeof(number));
  memcpy(id->internal + sizeof(number), &pid, sizeof(pid));
  return ncclSuccess;
}
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  (void)size, (void)id, (void)rank;
  *comm = (ncclComm_t)&objects[atomic_fetch_add(&made, 1) % (int)sizeof(objects)];
  return ncclSuccess;
}
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  (void)comm;
  *count = 2;
  return ncclSuccess;
}
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  (void)comm;
  *rank = 0;
  return ncclSuccess;
}
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  (void)comm;
  *device = 0;
  return ncclSuccess;
}
ncclResult_t pncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                            ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  (void)from, (void)count, (void)type, (void)operation, (void)comm, (void)stream;
  if (to != 0) *(volatile int*)to = COPY;
  if (callback != 0) callback();
  return ncclSuccess;
}
ncclResult_t pncclGroupStart(void) { return ncclSuccess; }
ncclResult_t pncclGroupEnd(void) { return ncclSuccess; }
ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  (void)comm;
  return ncclSuccess;
}

TWIN(ncclGetVersion) ncclResult_t ncclGetVersion(int*);
TWIN(ncclGetUniqueId) ncclResult_t ncclGetUniqueId(ncclUniqueId*);
TWIN(ncclCommInitRank) ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
TWIN(ncclCommCount) ncclResult_t ncclCommCount(const ncclComm_t, int*);
TWIN(ncclCommUserRank) ncclResult_t ncclCommUserRank(const ncclComm_t, int*);
TWIN(ncclCommCuDevice) ncclResult_t ncclCommCuDevice(const ncclComm_t, int*);
TWIN(ncclAllReduce)
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
TWIN(ncclGroupStart) ncclResult_t ncclGroupStart(void);
TWIN(ncclGroupEnd) ncclResult_t ncclGroupEnd(void);
TWIN(ncclCommDestroy) ncclResult_t ncclCommDestroy(ncclComm_t);
