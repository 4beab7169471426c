// SPDX-License-Identifier: Apache-2.0
// Reads what NVIDIA's cuda-gdb prints about a core dump of a GPU: its tables of "info cuda kernels"
// and "info cuda threads". The form is that of NVIDIA's manual and of its releases since 11.8.
// Pure.
//
// A job names its kernels and source files, so the text is a stranger's: whatever it holds, the
// result is bounded, and each text in it is one clean line without a secret.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rollcall/v1/incident.pb.h"
#include "security/redact.h"

namespace rollcall {

// Beyond it nothing is read. A full GPU has some thousand rows of a hundred bytes.
inline constexpr size_t kMostGdbText = size_t{2} << 20;
inline constexpr size_t kMostGpuText = 256;  // bytes of a name or a place

enum class GdbRead : uint8_t {
  kKernels,     // at least one kernel
  kNoKernel,    // it shows that no kernel is on the GPU
  kUnreadable,  // neither
};

// Sets the kernels of `dump`, those with most threads first.
GdbRead ReadCudaGdb(absl::string_view text, const Redactor& redactor, v1::GpuDump* dump);

}  // namespace rollcall
