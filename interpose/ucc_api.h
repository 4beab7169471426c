// SPDX-License-Identifier: Apache-2.0
// The functions of UCC that the library wraps, and the layouts of their arguments since UCC 1.0,
// with types that need none of its headers: enumerations are ints, handles are pointers.
//
// A field counts only where its bit in `mask` is set. An older version, or a caller, may not have
// the memory of the others.
#pragma once

#include <stdint.h>

extern "C" {

inline constexpr int kUccOk = 0, kUccInProgress = 1, kUccInitialized = 2, kUccNotSupported = -1;

// A request begins with its status. ucc_collective_test() is inline, and reads it.
struct UccRequest {
  int status;
};

// How the members exchange their addresses.
struct UccOob {
  void* functions[3];
  void* info;
  uint32_t size;
  uint32_t rank;
};

enum UccContextFields : uint64_t { kUccContextOob = 1 << 2 };
struct UccContextParams {
  uint64_t mask;
  int type;
  int sync_type;
  UccOob oob;
};

// The numbers that a team's members have in the context.
enum UccMapType : int { kUccMapFull = 1, kUccMapStrided = 2, kUccMapArray = 3 };
struct UccEpMap {
  int type;
  uint64_t size;
  union {
    struct {
      uint64_t start;
      int64_t stride;
    } strided;
    struct {
      const void* numbers;
      uint64_t bytes;  // of a number: 4 or 8
    } array;
  };
};

enum UccTeamFields : uint64_t {
  kUccTeamEp = 1 << 2,
  kUccTeamEpRange = 1 << 4,
  kUccTeamSize = 1 << 5,
  kUccTeamOob = 1 << 7,
  kUccTeamEpMap = 1 << 10,
  kUccTeamId = 1 << 11,
};
struct UccTeamParams {
  uint64_t mask;
  uint64_t flags;
  int ordering;
  uint64_t outstanding;
  uint64_t ep;
  const uint64_t* ep_list;
  int ep_range;  // 0 if `ep` is a rank
  uint64_t team_size;
  int sync_type;
  UccOob oob;
  void* p2p[5];
  void* memory[2];
  UccEpMap ep_map;
  uint64_t id;  // unique in the process, but not in the job
};
static_assert(sizeof(UccTeamParams) == 208);

enum UccTeamAttrFields : uint64_t { kUccAttrEp = 1 << 2, kUccAttrSize = 1 << 6 };
struct UccTeamAttr {
  uint64_t mask;
  int ordering;
  uint64_t outstanding;
  uint64_t ep;
  int ep_range;
  int sync_type;
  void* memory[2];
  uint32_t size;
  uint64_t* eps;
};

struct UccBuffer {
  void* address;
  uint64_t count;
  uint64_t datatype;
  int memory;
};
struct UccBuffers {  // of a call in which each rank has a count of its own
  void* address;
  uint64_t* counts;
  uint64_t* places;
  uint64_t datatype;
  int memory;
};
union UccSide {
  UccBuffer info;
  UccBuffers each;
};

enum UccCollFields : uint64_t {
  kUccCollFlags = 1 << 0,
  kUccCollCallback = 1 << 2,
  kUccCollActiveSet = 1 << 4,
};
enum UccCollFlags : uint64_t { kUccInPlace = 1 << 0 };
struct UccCollArgs {
  uint64_t mask;
  int type;  // a bit
  UccSide source, target;
  int reduction;
  uint64_t flags;
  uint64_t root;
};
static_assert(sizeof(UccSide) == 40 && sizeof(UccCollArgs) == 120);

struct UccEvent {
  int type;
  void* context;
  uint64_t context_bytes;
  UccRequest* request;
};

int ucc_context_create(void* library, const UccContextParams* params, void* config, void** context);
int ucc_context_progress(void* context);
int ucc_context_destroy(void* context);

int ucc_team_create_post(void** contexts, uint32_t count, const UccTeamParams* params, void** team);
int ucc_team_create_test(void* team);
int ucc_team_create_from_parent(uint64_t ep, uint32_t included, void* parent, void** team);
int ucc_team_destroy(void* team);

int ucc_collective_init(UccCollArgs* args, UccRequest** request, void* team);
int ucc_collective_post(UccRequest* request);
int ucc_collective_triggered_post(void* engine, UccEvent* event);
int ucc_collective_init_and_post(UccCollArgs* args, UccRequest** request, void* team);
int ucc_collective_finalize(UccRequest* request);
}
