// SPDX-License-Identifier: Apache-2.0
// The name that the library gives MPI_COMM_WORLD. Without PMIx its id is the same in each job.
#pragma once

namespace rollcall::segment {

inline constexpr char kMpiWorldName[] = "MPI_COMM_WORLD";

}  // namespace rollcall::segment
