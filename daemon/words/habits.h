// SPDX-License-Identifier: Apache-2.0
// Sentences about what ranks did in their last steps, and did not do this time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rollcall {

// "rank 1 has called AllReduce(...) here in each of its last 24 steps of 3 calls, and called
// Broadcast(...) this time". `expected`, `made`: calls in words.
std::string BrokenHabitInWords(const std::vector<int32_t>& ranks, const std::string& expected,
                               const std::string& made, size_t period, size_t steps);

// "rank 1 has issued Recv from rank 2 of ... in each of its last 24 steps of 7 calls, and did not
// this time".
std::string SkippedInWords(int32_t rank, const std::string& call, size_t period, size_t steps);

// "rank 2 has made the same 7 calls in each of its last 24 steps, and issued Send to rank 1 of ...
// beyond them this time".
std::string AddedInWords(int32_t rank, const std::string& call, size_t period, size_t steps);

}  // namespace rollcall
