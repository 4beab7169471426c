// SPDX-License-Identifier: Apache-2.0
// How the environment of a job makes CUDA write a core dump of a GPU on request: the names that
// NVIDIA's manual of cuda-gdb has.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rollcall {

// The dump has no memory of the job, and its process is not ended afterwards. What stays in it: the
// registers, the code and the arguments of kernels.
inline constexpr char kDumpFlags[] =
    "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
    "skip_abort";

// `folder`: of MakeGpuDumpFolder().
std::map<std::string, std::string> GpuDumpVariables(const std::string& folder);

// The pipe by which a process is asked, and the file that it then writes.
std::string GpuDumpPipe(const std::string& folder, int pid);
std::string GpuDumpFile(const std::string& folder, int pid);

// Returns whether a process began with these variables. CUDA reads them when it starts in the
// process.
bool HasGpuDumpVariables(const std::string& environ, const std::string& folder);

// Why no dump may be asked for on this host; empty if it may be. `driver`: the text of
// /proc/driver/nvidia/version, or empty. `has_mps_pipes`: the folder of CUDA's Multi-Process
// Service is in its usual place.
std::string WhyNoGpuDumps(const std::function<const char*(const char*)>& getenv,
                          absl::string_view driver, bool has_mps_pipes);

// A folder of its own, with mode 0700, in /tmp. An error names what to do.
absl::StatusOr<std::string> MakeGpuDumpFolder();

// Removes pipes and an empty folder. Returns the path of a dump that is still there, or empty.
std::string RemoveGpuDumpFolder(const std::string& folder);

}  // namespace rollcall
