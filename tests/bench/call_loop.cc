// SPDX-License-Identifier: Apache-2.0
// call_sites.py loads this by ctypes. It calls ncclAllReduce in a loop, below the Python frames of
// its caller.
#include <nccl.h>
#include <stdint.h>
#include <time.h>

extern "C" {

ncclComm_t MakeCommunicator() {
  ncclUniqueId id = {};
  ncclComm_t comm = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 2, id, 0);
  return comm;
}

// Returns the mean nanoseconds of a call.
double NanosecondsPerCall(ncclComm_t comm, int calls) {
  timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < calls; ++i) {
    ncclAllReduce(nullptr, nullptr, 1024, ncclFloat, ncclSum, comm, nullptr);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
          static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
         calls;
}
}
