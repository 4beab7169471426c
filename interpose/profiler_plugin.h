// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin, in the same file: where NCCL cannot be seen (static in the executable,
// bound by -Bsymbolic, opened by RTLD_DEEPBIND) it calls us itself.
//
// The constructor names this file in NCCL_PROFILER_PLUGIN, where nobody has named another. NCCL then
// asks for a table of functions with each version that it knows. Where the wrappers see its calls,
// we ask for no event. A plugin that the user has, by name or as NCCL finds one without, gets all
// the events that it wants.
//
// From version 4 (NCCL 2.27) on a communicator tells its ranks; before, nothing is recorded.
//
// NCCL calls the table's functions on the threads that call NCCL and on its own; they record as the
// wrappers do (call_record.h), and never wait. ProfilerTableFor() is for dlsym.cc.
#pragma once

namespace rollcall {

// What NCCL is to get when it looks up "ncclProfiler_vN" (`name`) in some library that has `real`
// by this name: ours where there is something to see.
void* ProfilerTableFor(const char* name, void* real);

inline constexpr char kProfilerPrefix[] = "ncclProfiler_v";

}  // namespace rollcall
