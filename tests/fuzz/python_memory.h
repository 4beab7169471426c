// SPDX-License-Identifier: Apache-2.0
// Addresses in the memory that the target for Python reads.
#pragma once

#include <cstdint>

namespace rollcall {
namespace fuzz {

inline constexpr uint64_t kPythonRuntime = 0x100;  // of _PyRuntime
inline constexpr uint64_t kPythonThread = 0x77;    // tid and pthread_self() of the threads

}  // namespace fuzz
}  // namespace rollcall
