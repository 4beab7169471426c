// SPDX-License-Identifier: Apache-2.0
// The interface between NCCL and a profiler plugin, versions 1 (NCCL 2.23) to 6 (2.29), as far as
// the library uses it. Layouts from plugins/profiler/example/nccl/profiler_v*.h of NCCL 2.30.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rollcall::profiler {

inline constexpr int kVersions = 6;

// ncclProfiler_vN. The versions differ in init() and in the content of a descriptor.
struct Table {
  const char* name;
  void (*init)();  // InitOld, Init4 or Init5
  int (*start)(void* context, void** handle, void* descriptor);
  int (*stop)(void* handle);
  int (*record)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

using InitOld = int (*)(void** context, int* mask);  // versions 1 to 3
using Init4 = int (*)(void** context, int* mask, const char* name, uint64_t comm_hash, int nodes,
                      int ranks, int rank, void* log);
using Init5 = int (*)(void** context, uint64_t comm_hash, int* mask, const char* name, int nodes,
                      int ranks, int rank, void* log);

// Bits of the mask, and values of a descriptor's type.
enum Event : uint64_t {
  kGroup = 1,
  kColl = 2,  // a collective is launched
  kP2p = 4,
  kProxyOp = 8,     // transfers of a collective, send or receive on one channel with one peer
  kProxyStep = 16,  // a step of such transfers
  kNetPlugin = 128,
  kGroupApi = 256,  // from version 5 on: the API calls themselves
  kCollApi = 512,
  kP2pApi = 1024,
};
inline constexpr int kGroupEndBegins = 24;  // state of a kGroupApi event

// States of a kProxyStep event.
enum StepState : int {
  kSendGpuWait = 8,
  kSendWait = 9,
  kReceiveWait = 10,
  kReceiveFlushWait = 11,
  kReceiveGpuWait = 12,
  kSendPeerWait = 20,
};

// The start of a descriptor. Up to version 4 `type` is one byte, at the same offset.
struct Descriptor {
  uint64_t type;
  void* parent;  // a handle of another event
  int rank;
};
inline constexpr size_t kDetailsOffset = 24;

struct CollApi {         // versions 5 and 6
  const char* function;  // "AllReduce"
  size_t count;
  const char* datatype;  // "ncclFloat32"
  int root;
  void* stream;
  bool captured;
};

struct Coll {  // versions 4 to 6
  uint64_t number;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
};

struct P2p {  // versions 4 to 6
  const char* function;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
};

struct ProxyOp {  // versions 1 to 6
  int pid;        // of the process whose collective it is: another one, if NCCL uses PXN
  uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int sends;
};

struct ProxyStep {  // versions 1 to 6; its parent is the handle of a kProxyOp event
  int step;         // of the transfer, from 0
};

// The part of a descriptor that is one of the structs above.
template <typename Details>
const Details& DetailsAt(const void* descriptor) {
  return *reinterpret_cast<const Details*>(static_cast<const char*>(descriptor) + kDetailsOffset);
}
template <typename Details>
Details& DetailsAt(void* descriptor) {
  return *reinterpret_cast<Details*>(static_cast<char*>(descriptor) + kDetailsOffset);
}

}  // namespace rollcall::profiler
