// SPDX-License-Identifier: Apache-2.0
// The functions of NVSHMEM's host library that the library wraps, and the layouts of their
// arguments since NVSHMEM 3.0, with types that need none of its headers. A team is a number.
//
// nvshmem_init(), nvshmemx_init_attr() and nvshmem_finalize() are inline, or of the part that is
// linked into the program: they come to nvshmemid_hostlib_init_attr() and its end. Programs that
// link nothing of NVSHMEM into themselves, such as those in Python, call nvshmemx_hostlib_*.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

inline constexpr int32_t kNvshmemInvalidTeam = -1, kNvshmemWorld = 0;

struct NvshmemUniqueId {
  char bytes[128];
};
inline constexpr unsigned kNvshmemByUniqueId = 1 << 3;  // among the flags of the start
struct NvshmemInitAttr {
  int version;
  void* mpi_comm;
  int args_version;
  struct {
    int version;
    const NvshmemUniqueId* id;
    int rank;
    int size;
  } unique;
};
static_assert(offsetof(NvshmemInitAttr, unique.rank) == 40);
struct NvshmemVersion {
  int major, minor, patch;
};
struct NvshmemTeamConfig {
  int version;
  int contexts;
  uint64_t unique_id;
};

int nvshmemid_hostlib_init_attr(int wanted, int* provided, unsigned flags, NvshmemInitAttr* attr,
                                NvshmemVersion version, void* callback);
void nvshmemid_hostlib_finalize(void* device, void* transport);
int nvshmemx_hostlib_init_attr(unsigned flags, NvshmemInitAttr* attr);
void nvshmemx_hostlib_finalize();

int nvshmem_team_split_strided(int32_t parent, int start, int stride, int size,
                               const NvshmemTeamConfig* config, long mask, int32_t* team);
int nvshmem_team_split_2d(int32_t parent, int range, const NvshmemTeamConfig* x_config, long x_mask,
                          int32_t* x_team, const NvshmemTeamConfig* y_config, long y_mask,
                          int32_t* y_team);
int nvshmemx_team_init(int32_t* team, NvshmemTeamConfig* config, long mask, int size, int rank);
void nvshmem_team_destroy(int32_t team);

void nvshmem_barrier_all();
int nvshmem_barrier(int32_t team);
void nvshmem_sync_all();
int nvshmem_team_sync(int32_t team);
void nvshmemx_barrier_all_on_stream(void* stream);
int nvshmemx_barrier_on_stream(int32_t team, void* stream);
void nvshmemx_sync_all_on_stream(void* stream);
int nvshmemx_team_sync_on_stream(int32_t team, void* stream);

int nvshmemx_alltoallmem_on_stream(int32_t team, void* to, const void* from, size_t count,
                                   void* stream);
int nvshmemx_fcollectmem_on_stream(int32_t team, void* to, const void* from, size_t count,
                                   void* stream);
int nvshmemx_broadcastmem_on_stream(int32_t team, void* to, const void* from, size_t count,
                                    int root, void* stream);

#define NVSHMEM_DECLARE(symbol, op, reduction) \
  int symbol(int32_t team, void* to, const void* from, size_t count, void* stream);
#define NVSHMEM_TYPED(type, dtype)                                                    \
  NVSHMEM_WITHOUT_ROOT(type, NVSHMEM_DECLARE)                                         \
  int nvshmemx_##type##_broadcast_on_stream(int32_t team, void* to, const void* from, \
                                            size_t count, int root, void* stream);
#include "interpose/nvshmem_types.def"
}
