// SPDX-License-Identifier: Apache-2.0
// Core dumps of GPUs, for programs that can ask for them: `rollcall run --gpu-dump`, on the host of
// its job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_key.h"

namespace rollcall {

// A process whose GPU is to be dumped.
struct GpuDumpTarget {
  int32_t rank = -1;
  std::string host;
  int32_t pid = 0;
  int32_t device = -1;  // -1 if unknown
  bool is_culprit = false;
  std::string why_not;  // it must not be asked, for this reason; empty if it may be
};

struct GpuDumpRequest {
  JobKey job;
  std::string incident;
  std::vector<GpuDumpTarget> targets;  // empty if no process can be asked
};

// The worker that runs the job calls it.
class GpuDumpSource {
 public:
  virtual ~GpuDumpSource() = default;

  // Returns at once. What comes of it is added to the incident later.
  virtual void Ask(const GpuDumpRequest& request) = 0;
};

}  // namespace rollcall
