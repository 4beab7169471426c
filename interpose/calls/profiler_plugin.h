// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin, in the same file as the library. NCCL calls it if symbol interposition
// does not reach NCCL: static in the executable, bound by -Bsymbolic, opened with RTLD_DEEPBIND.
//
// The constructor sets NCCL_PROFILER_PLUGIN to this file, unless the user has set it. NCCL then
// looks up a table of functions for each version that it supports. If the wrappers record its
// calls, the plugin requests only the events of transfers over the network (profiler_network.h). A
// plugin of the user, by name or by NCCL's search, gets all the events that it requests.
//
// From version 4 (NCCL 2.27) on NCCL reports the ranks of a communicator. With an older version the
// plugin records nothing.
//
// NCCL calls the table's functions on the threads that call NCCL and on its own threads. The
// functions record as the wrappers do (call_record.h), and never wait. ProfilerTableFor() is for
// dlsym.cc.
#pragma once

namespace rollcall {

// The table for NCCL's look-up of "ncclProfiler_vN" (`name`), for which the library that NCCL
// searches has `real`. Returns our table if the plugin has calls to record, else the other
// plugin's.
void* ProfilerTableFor(const char* name, void* real);

inline constexpr char kProfilerPrefix[] = "ncclProfiler_v";

}  // namespace rollcall
