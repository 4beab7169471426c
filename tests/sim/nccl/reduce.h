// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the data types of NCCL.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace rollcall::sim {

// Bytes of an element; 0 for a type that there is not.
size_t ElementSize(ncclDataType_t dtype);

// out[i] = op over all sources[..][i], in the sources' order, so the result
// depends on nothing else. `out` may be one of the sources. Narrow floats are
// added up as float.
void Reduce(ncclDataType_t dtype, ncclRedOp_t op, const std::vector<const char*>& sources,
            size_t count, char* out);

// out[i] = in[i] * scalar.
void Scale(ncclDataType_t dtype, const void* scalar, const char* in, size_t count, char* out);

}  // namespace rollcall::sim
