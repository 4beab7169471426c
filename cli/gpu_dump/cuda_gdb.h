// SPDX-License-Identifier: Apache-2.0
// Runs NVIDIA's cuda-gdb on a core dump of a GPU, apart from this process and with limits: CPU
// time, memory, the time of a clock, and the size of what it prints. It needs no GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace rollcall {

struct GdbLimits {
  int64_t within_ns = 20'000'000'000;
  int cpu_seconds = 20;
  int64_t memory_kib = int64_t{8} << 20;  // of addresses
};

struct GdbOutput {
  std::string text;     // what it printed, also its errors
  std::string problem;  // why it is not whole, or not there; empty if it is
};

// The program, in the folders of `path` (a PATH; may be nullptr) or where CUDA's packages put it.
// Empty if it is not installed.
std::string FindCudaGdb(const char* path);

// `dump`: a path of this project's own, without blanks. Returns early when `is_stopping` becomes
// true.
GdbOutput RunCudaGdb(const std::string& program, const std::string& dump, const GdbLimits& limits,
                     const std::atomic<bool>& is_stopping);

}  // namespace rollcall
