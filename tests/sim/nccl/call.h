// SPDX-License-Identifier: Apache-2.0
// One call to a collective, send or receive, as it waits for its stream.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rollcall::sim {

enum class Function : int32_t {
  kAllReduce = 1,
  kAllGather,
  kReduceScatter,
  kReduce,
  kBroadcast,
  kAlltoAll,
  kGather,
  kScatter,
  kSend,
  kRecv
};

// A reduction made by ncclRedOpCreatePreMulSum().
struct PreMultiply {
  ncclDataType_t dtype;
  const void* device_scalar = nullptr;  // read when the collective runs, if not null
  char scalar[8] = {};
};

struct Call {
  Function function;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  ncclDataType_t dtype = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = 0;  // or the peer of a send or receive
  size_t bytes = 0;
  std::shared_ptr<const PreMultiply> scale;  // then op is ncclSum
  void* task = nullptr;                      // a profiler plugin's handle of the launch

  bool is_p2p() const { return function == Function::kSend || function == Function::kRecv; }
};

}  // namespace rollcall::sim
