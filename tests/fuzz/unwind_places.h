// SPDX-License-Identifier: Apache-2.0
// Addresses in the process whose stack the target for unwinding reads.
#pragma once

#include <cstdint>

namespace rollcall {
namespace fuzz {

inline constexpr uint64_t kUnwindCode = 0x400000;
inline constexpr uint64_t kUnwindStack = 0x7f0000000000;

}  // namespace fuzz
}  // namespace rollcall
