// SPDX-License-Identifier: Apache-2.0
// The functions of oneCCL's C interface (since 2022) that the library wraps, with types that need
// none of its headers: enumerations are ints, handles are pointers. Its C++ interface:
// oneccl_cpp_api.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {
struct onecclUniqueId {
  char data[4096];
};

#define ENQUEUED(symbol, op, dtype, reduction, peer, count, parameters, arguments) \
  int symbol(parameters);
#include "interpose/oneccl_calls.def"

int onecclGroupStart();
int onecclGroupEnd();

int onecclCommInitRank(void** comm, size_t ranks, onecclUniqueId id, int rank);
int onecclCommInitRankConfig(void** comm, size_t ranks, onecclUniqueId id, int rank,
                             const void* config);
int onecclCommSplit(void* comm, int color, int key, void** created, void* config);
int onecclCommDestroy(void* comm);
}
