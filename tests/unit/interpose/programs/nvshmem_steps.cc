// SPDX-License-Identifier: Apache-2.0
// A program that calls a stub of NVSHMEM, as PE RANK of 4, for tests of the preloaded library. Its
// arguments are its steps. "id" comes first, if at all: it starts by a unique id.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "interpose/nvshmem_api.h"

namespace {

void* const kStream = reinterpret_cast<void*>(0x5000);
constexpr int32_t kNode = 2;

int Pe() { return atoi(getenv("RANK")); }

int Start(unsigned flags) {
  const char* version = getenv("ATTR_VERSION");
  const int by_version = version == nullptr ? 1 : atoi(version);
  NvshmemUniqueId id = {"the root"};
  NvshmemInitAttr attr = {};
  attr.version = (by_version << 16) + 144;
  attr.unique = {1, &id, Pe(), 4};
  if (getenv("BY_HOST_LIBRARY") != nullptr) return nvshmemx_hostlib_init_attr(flags, &attr);
  int provided = 0;
  return nvshmemid_hostlib_init_attr(0, &provided, flags, &attr, {1, 2, 3}, &provided);
}

void Host() {
  nvshmem_barrier_all();
  nvshmem_barrier(kNvshmemWorld);
  nvshmem_sync_all();
  nvshmem_team_sync(kNvshmemWorld);
}

void Stream() {
  nvshmemx_barrier_all_on_stream(kStream);
  nvshmemx_barrier_on_stream(kNvshmemWorld, kStream);
  nvshmemx_sync_all_on_stream(kStream);
  nvshmemx_team_sync_on_stream(kNvshmemWorld, kStream);
}

void Typed() {
  nvshmemx_float_sum_reduce_on_stream(kNvshmemWorld, nullptr, nullptr, 24, kStream);
  nvshmemx_int16_max_reducescatter_on_stream(kNvshmemWorld, nullptr, nullptr, 3, kStream);
  nvshmemx_double_broadcast_on_stream(kNvshmemWorld, nullptr, nullptr, 5, 2, kStream);
  nvshmemx_alltoallmem_on_stream(kNvshmemWorld, nullptr, nullptr, 7, kStream);
}

// PEs 0 and 2, or 1 and 3.
void Parts() {
  int32_t team = 0;
  nvshmem_team_split_strided(kNvshmemWorld, Pe() % 2, 2, 2, nullptr, 0, &team);
  nvshmem_barrier(team);
  nvshmem_team_destroy(team);
}

// PEs 0 and 1.
void First() {
  int32_t team = 0;
  nvshmem_team_split_strided(kNvshmemWorld, 0, 1, 2, nullptr, 0, &team);
}

void Grid() {
  int32_t row = 0, column = 0;
  nvshmem_team_split_2d(kNvshmemWorld, 2, nullptr, 0, &row, nullptr, 0, &column);
}

void Team() {
  NvshmemTeamConfig config = {1, 1, 77};
  int32_t team = 0;
  nvshmemx_team_init(&team, &config, 2, 4, Pe());
}

}  // namespace

int main(int count, char** steps) {
  const bool by_id = count > 1 && strcmp(steps[1], "id") == 0;
  if (Start(by_id ? kNvshmemByUniqueId : 0) != 0) _exit(1);
  for (int i = 1; i < count; ++i) {
    const auto is = [&](const char* step) { return strcmp(steps[i], step) == 0; };
    if (is("host")) Host();
    if (is("stream")) Stream();
    if (is("typed")) Typed();
    if (is("parts")) Parts();
    if (is("first")) First();
    if (is("grid")) Grid();
    if (is("team")) Team();
    if (is("node")) nvshmem_barrier(kNode);
    if (is("again")) Start(0);
    if (is("end")) nvshmemid_hostlib_finalize(nullptr, nullptr);
    if (is("host_end")) nvshmemx_hostlib_finalize();
  }
  _exit(0);
}
