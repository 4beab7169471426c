// SPDX-License-Identifier: Apache-2.0
// What NCCL and a profiler plugin pass each other, of versions 1 (NCCL 2.23) to 6 (2.29), as far as
// it is used here. Layouts as in plugins/profiler/example/nccl/profiler_v*.h of NCCL 2.30.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rollcall::profiler {

inline constexpr int kVersions = 6;

// ncclProfiler_vN. Only init() differs between versions, and what a descriptor holds.
struct Table {
  const char* name;
  void (*init)();  // one of those below
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
  kGroupApi = 256,  // from here on of version 5: the calls themselves
  kCollApi = 512,
  kP2pApi = 1024,
};
inline constexpr int kGroupEndBegins = 24;  // state of a kGroupApi event

// A descriptor's head. Until version 4 `type` is one byte, at the same place.
struct Descriptor {
  uint64_t type;
  void* parent;  // a handle of another event
  int rank;
};
inline constexpr size_t kDetailsOffset = 24;

struct CollApi {  // versions 5 and 6
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

// Of a struct above, within a descriptor.
template <typename Details>
const Details& DetailsAt(const void* descriptor) {
  return *reinterpret_cast<const Details*>(static_cast<const char*>(descriptor) + kDetailsOffset);
}
template <typename Details>
Details& DetailsAt(void* descriptor) {
  return *reinterpret_cast<Details*>(static_cast<char*>(descriptor) + kDetailsOffset);
}

}  // namespace rollcall::profiler
