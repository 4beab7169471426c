// SPDX-License-Identifier: Apache-2.0
// A libnvshmem_host.so.3 for tests: NVSHMEM's host functions, with nothing behind them, as PE RANK
// of STUB_PES (4), two on a node. The function whose name is in STUB_ENDS_IN ends the process,
// where a real one would wait.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "interpose/nvshmem_api.h"

namespace {

struct Team {
  int rank, size;
};
std::vector<Team> teams;
constexpr size_t kMade = 7;  // by NVSHMEM itself, with the one of all PEs

int Number(const char* name, int other) {
  const char* value = getenv(name);
  return value == nullptr ? other : atoi(value);
}
int Pe() { return Number("RANK", 0); }
int Pes() { return Number("STUB_PES", 4); }

int Call(const char* name) {
  const char* end = getenv("STUB_ENDS_IN");
  if (end != nullptr && strcmp(end, name) == 0) _exit(0);
  return 0;
}

int32_t Add(int rank, int size) {
  teams.push_back({rank, size});
  return static_cast<int32_t>(teams.size()) - 1;
}

int Start() {
  Call("nvshmem_init");
  if (teams.empty()) teams = {{Pe(), Pes()}, {Pe() % 2, 2}, {Pe() % 2, 2}};
  if (teams.size() < kMade) teams.resize(kMade, {0, 1});
  return 0;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wunused-parameter"

extern "C" {
int nvshmem_my_pe() { return Pe(); }
int nvshmem_n_pes() { return Pes(); }
int nvshmem_team_my_pe(int32_t team) { return teams[static_cast<size_t>(team)].rank; }
int nvshmem_team_n_pes(int32_t team) { return teams[static_cast<size_t>(team)].size; }

int nvshmemid_hostlib_init_attr(int, int*, unsigned, NvshmemInitAttr*, NvshmemVersion version,
                                void* callback) {
  // The version lies in two registers, and the callback on the stack.
  if (version.patch != 3 || callback == nullptr) return 1;
  return Start();
}
void nvshmemid_hostlib_finalize(void*, void*) { Call("nvshmem_finalize"); }
// One reaches the functions above through the linker, as NVSHMEM 3.8 does; the other one does not.
int nvshmemx_hostlib_init_attr(unsigned flags, NvshmemInitAttr* attr) {
  if (getenv("STUB_NESTS") == nullptr) return Start();
  return nvshmemid_hostlib_init_attr(0, nullptr, flags, attr, {1, 2, 3}, &teams);
}
void nvshmemx_hostlib_finalize() { nvshmemid_hostlib_finalize(nullptr, nullptr); }

int nvshmem_team_split_strided(int32_t, int start, int stride, int size, const NvshmemTeamConfig*,
                               long, int32_t* team) {
  const int place = (Pe() - start) / stride;
  const bool is_member = Pe() >= start && (Pe() - start) % stride == 0 && place < size;
  *team = is_member ? Add(place, size) : kNvshmemInvalidTeam;
  return Call("nvshmem_team_split_strided");
}
int nvshmem_team_split_2d(int32_t, int range, const NvshmemTeamConfig*, long, int32_t* x_team,
                          const NvshmemTeamConfig*, long, int32_t* y_team) {
  *x_team = Add(Pe() % range, range);
  *y_team = Add(Pe() / range, Pes() / range);
  return Call("nvshmem_team_split_2d");
}
int nvshmemx_team_init(int32_t* team, NvshmemTeamConfig*, long, int size, int rank) {
  *team = Add(rank, size);
  return Call("nvshmemx_team_init");
}
void nvshmem_team_destroy(int32_t) { Call("nvshmem_team_destroy"); }

void nvshmem_barrier_all() { Call("nvshmem_barrier_all"); }
int nvshmem_barrier(int32_t) { return Call("nvshmem_barrier"); }
void nvshmem_sync_all() { Call("nvshmem_sync_all"); }
int nvshmem_team_sync(int32_t) { return Call("nvshmem_team_sync"); }
void nvshmemx_barrier_all_on_stream(void*) { Call("nvshmemx_barrier_all_on_stream"); }
int nvshmemx_barrier_on_stream(int32_t, void*) { return Call("nvshmemx_barrier_on_stream"); }
void nvshmemx_sync_all_on_stream(void*) { Call("nvshmemx_sync_all_on_stream"); }
int nvshmemx_team_sync_on_stream(int32_t, void*) { return Call("nvshmemx_team_sync_on_stream"); }

int nvshmemx_alltoallmem_on_stream(int32_t, void*, const void*, size_t, void*) { return 0; }
int nvshmemx_fcollectmem_on_stream(int32_t, void*, const void*, size_t, void*) { return 0; }
int nvshmemx_broadcastmem_on_stream(int32_t, void*, const void*, size_t, int, void*) { return 0; }

#define DEFINE(symbol, op, reduction) \
  int symbol(int32_t, void*, const void*, size_t, void*) { return Call(#symbol); }
#define NVSHMEM_TYPED(type, dtype)                                                             \
  NVSHMEM_WITHOUT_ROOT(type, DEFINE)                                                           \
  int nvshmemx_##type##_broadcast_on_stream(int32_t, void*, const void*, size_t, int, void*) { \
    return 0;                                                                                  \
  }
#include "interpose/nvshmem_types.def"
}
