// SPDX-License-Identifier: Apache-2.0
// Another tool's preloaded library: counts all-reduces and passes them on with
// RTLD_NEXT, as such tools do, and prints the count at exit.
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>

namespace {

int seen = 0;

__attribute__((destructor)) void Say() {
  if (seen > 0) fprintf(stderr, "other interposer: %d\n", seen);
}

}  // namespace

extern "C" ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count,
                                      ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream) {
  ++seen;
  const auto next = reinterpret_cast<decltype(&ncclAllReduce)>(dlsym(RTLD_NEXT, "ncclAllReduce"));
  if (next == nullptr || next == &ncclAllReduce) return ncclInternalError;
  return next(send, receive, count, type, op, comm, stream);
}
