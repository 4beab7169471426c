// SPDX-License-Identifier: Apache-2.0
// A libccl.so.2 for tests: the functions of oneCCL's C interface, with nothing behind them. Each
// communicator is of rank 1 of 3.
#include "interpose/oneccl_api.h"

namespace {

int comms[8];
int made = 0;

int Make(void** comm) {
  *comm = &comms[made++];
  return 0;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ENQUEUED(symbol, op, dtype, reduction, peer, count, parameters, arguments) \
  extern "C" int symbol(parameters) { return 0; }
#include "interpose/oneccl_calls.def"

extern "C" {
int onecclGroupStart() { return 0; }
int onecclGroupEnd() { return 0; }
int onecclCommInitRank(void** comm, size_t, onecclUniqueId, int) { return Make(comm); }
int onecclCommInitRankConfig(void** comm, size_t, onecclUniqueId, int, const void*) {
  return Make(comm);
}
int onecclCommSplit(void*, int color, int, void** created, void*) {
  *created = nullptr;
  return color < 0 ? 0 : Make(created);
}
int onecclCommUserRank(void*, int* rank) {
  *rank = 1;
  return 0;
}
int onecclCommCount(void*, int* size) {
  *size = 3;
  return 0;
}
int onecclCommDestroy(void*) { return 0; }
}
