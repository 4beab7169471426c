// SPDX-License-Identifier: Apache-2.0
// Which ranks stand elsewhere in the program than most, by one sample of their stacks. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// A rank and its stacks.
using RankStack = std::pair<int32_t, v1::ProcessStack>;

// "rank 2 is at train.py:50 in validate; ranks 0,1,3 are at train.py:20 in train", the fewest
// first; "all 4 ranks are at train.py:20 in train". Empty if no rank shows a line of its program.
std::string WhoDiffers(const std::vector<RankStack>& stacks);

// Returns the stack without the frames of the interpreter's own C code.
v1::ProcessStack WithoutInterpreter(v1::ProcessStack stack);

}  // namespace rollcall
