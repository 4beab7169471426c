// SPDX-License-Identifier: Apache-2.0
// How large a look at a host may be: for who takes it, and for who receives it from a stranger. The
// comments of look.proto name these numbers.
#pragma once

#include <cstddef>

namespace rollcall {

inline constexpr size_t kMostLookBytes = 16 << 20;
inline constexpr int kMostProcessesOfLook = 4096;
inline constexpr int kMostSamplesOfProcess = 8;
inline constexpr int kMostUnseenOfLook = 64;
inline constexpr int kMostRasAnswersOfLook = 64;
inline constexpr int kMostLogsOfLook = 64;
inline constexpr int kMostLinesOfLog = 20;
inline constexpr size_t kMostRasText = 4 << 20;  // an answer in JSON: longer than RAS sends it

}  // namespace rollcall
