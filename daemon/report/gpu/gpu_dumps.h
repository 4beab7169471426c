// SPDX-License-Identifier: Apache-2.0
// What GPUs did, by their core dumps, in an incident and in its report.
#pragma once

#include <string>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr int kMostGpuDumps = 8;
inline constexpr int kMostGpuKernels = 8;  // of a dump
inline constexpr int kMostGpuPlaces = 8;   // of a kernel

// Adds a dump to an incident, in place of what this process showed before. Beyond kMostGpuDumps the
// oldest one goes.
void AddToIncident(const v1::GpuDump& dump, v1::Incident* incident);

// Returns a line for each kernel: "rank 3 (node-17, pid 4121), the culprit: GPU 3 is in kernel
// spin, grid (24,1,1), block (640,1,1): 14720 of 15360 threads at spin.cu:31"; or for why there is
// none.
std::vector<std::string> GpuDumpLines(const v1::Incident& incident);

}  // namespace rollcall
