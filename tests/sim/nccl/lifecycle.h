// SPDX-License-Identifier: Apache-2.0
// Creates and ends communicators. The public functions only check their arguments.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// The name under which the ranks with these ids meet.
std::string NameOfIds(const ncclUniqueId* ids, int count);

ncclResult_t InitRank(ncclComm_t* handle, int nranks, const std::string& name, int rank, int device,
                      const ncclConfig_t* config);
ncclResult_t Split(const CommRef& parent, int color, int key, ncclComm_t* handle,
                   const ncclConfig_t* config);
ncclResult_t Shrink(const CommRef& parent, std::vector<int> excluded, ncclComm_t* handle,
                    const ncclConfig_t* config, int flags);
// The unique id by which ranks join the parent's next child. Every rank of the parent computes the
// same id.
ncclUniqueId GrowId(const Comm& parent);
ncclResult_t Grow(const CommRef& parent, int nranks, ncclComm_t* handle,
                  const ncclConfig_t* config);
ncclResult_t Finalize(const CommRef& comm);
ncclResult_t Destroy(const CommRef& comm);
ncclResult_t Abort(const CommRef& comm);
ncclResult_t Revoke(const CommRef& comm);
ncclResult_t AsyncError(const CommRef& comm, ncclResult_t* error);

}  // namespace rollcall::sim
