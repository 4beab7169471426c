// SPDX-License-Identifier: Apache-2.0
// Warnings as NCCL gives them: kept for ncclGetLastError(), and printed when
// NCCL_DEBUG asks for it.
#pragma once

#include <nccl.h>

namespace rollcall::sim {

// Returns `result`.
ncclResult_t Warn(ncclResult_t result, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
const char* LastWarning();

}  // namespace rollcall::sim
