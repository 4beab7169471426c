// SPDX-License-Identifier: Apache-2.0
// Which release of NCCL a process runs, and whether its RAS can be asked without a risk for the
// job.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// "2.28.9" in the name of a file, "libnccl.so.2.28.9", or of Python's package,
// "nvidia_nccl_cu12-2.28.9.dist-info", as 22809; 0 if the name has no release.
int NcclVersionInName(absl::string_view name);

// As NCCL_VERSION_CODE, by the file that the process has mapped or by the Python package that this
// file belongs to; 0 if unknown. Reads /proc and the package's folder, and may block: see
// agent/processes/spare_threads.h.
int ReadNcclVersion(const std::string& proc_root, pid_t pid);

// "2.28.9"; empty if unknown.
std::string NcclVersionInWords(int version);

// Why a query to RAS could harm the job, with the report of it; empty if no such defect is known of
// this release, in a job that creates and destroys no communicator.
std::string RiskOfAskingRas(int version);

}  // namespace rollcall
