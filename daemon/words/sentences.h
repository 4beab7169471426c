// SPDX-License-Identifier: Apache-2.0
// Writes a verdict as one sentence: ranks, call, communicator and length of the wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// "rank 3 (node-17, pid 4121) is in `validate` (train.py:212) and has not called AllReduce #8812 on
// communicator "dp"; 63 ranks have waited 48 s". At most kLongestSentence bytes.
std::string WriteSummary(const Verdict& verdict);
inline constexpr size_t kLongestSentence = 400;

// "rank 0 waits in AllReduce #3 on communicator "dp" for rank 1".
std::string EdgeInWords(const WaitEdge& edge);

}  // namespace rollcall
