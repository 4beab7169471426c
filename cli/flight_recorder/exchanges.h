// SPDX-License-Identifier: Apache-2.0
// All-to-alls in which the ranks together send another number of elements than they receive. Dumps
// hold the totals of each rank, and no splits: in a correct program the sums over all ranks are
// equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flight_recorder/dump_files.h"

namespace rollcall {

struct UnequalExchange {
  std::string group;  // its name
  std::vector<int32_t> members;
  uint64_t position = 0;  // of the call in the group, from 0
  std::string words;      // "the ranks send 64 elements and receive 65"
};

// Finds them in groups of which every rank has a dump. Where all ranks but one send as much as they
// receive, and as much as each other, sets DumpedCall::exchanged of all: the odd rank differs.
std::vector<UnequalExchange> FindUnequalExchanges(std::vector<RankedDump>* dumps);

}  // namespace rollcall
