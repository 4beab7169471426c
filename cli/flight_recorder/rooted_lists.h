// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters whose ranks have different numbers of elements. The root has a list with the
// number of each rank, so such a call is right if every rank has the number in that list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flight_recorder/dump_files.h"

namespace rollcall {

// A gather or scatter of different numbers, of which no dump has the root's list.
struct UnlistedCall {
  std::string group;  // its name
  std::vector<int32_t> members;
  uint64_t position = 0;  // of the call in the group, from 0
};

// Sets DumpedCall::is_in_list of the calls whose numbers are those of the root's list. Returns
// those of which nothing shows whether a number is wrong.
std::vector<UnlistedCall> CompareWithRoots(std::vector<RankedDump>* dumps);

}  // namespace rollcall
