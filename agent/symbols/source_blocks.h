// SPDX-License-Identifier: Apache-2.0
// Finds the blocks of a Python source around a line: the loops, conditions and handlers that the
// line is in, by the indentation. Only line numbers leave this file, no text. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/processes/source_block.h"

namespace rollcall {

// Returns the blocks of the function around the line, outermost first; at most the `most`
// innermost.
std::vector<SourceBlock> BlocksAround(absl::string_view source, int line, size_t most);

// Returns the last line with `return` before this one in its function, without the functions in it;
// 0 if there is none. Another rank may have left the function there.
int32_t ReturnBefore(absl::string_view source, int line);

}  // namespace rollcall
