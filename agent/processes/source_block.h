// SPDX-License-Identifier: Apache-2.0
// A block of a Python source, by its first and last line.
#pragma once

#include <cstdint>

namespace rollcall {

enum class SourceBlockKind : uint8_t {
  kLoop,       // for, while
  kCondition,  // if, elif, else, match, case
  kHandler,    // except
};

struct SourceBlock {
  SourceBlockKind kind = SourceBlockKind::kLoop;
  int32_t first = 0, last = 0;
  // Of a loop: the first line that may end a pass before its end (continue, except), and the first
  // that ends the loop (break, return), or 0. Of a condition, `ends_at`: its last line, if that
  // leaves the pass or the function (also continue, raise), or 0.
  int32_t skips_at = 0, ends_at = 0;
  // For a condition, the line of the if or match that decides between it and its other branches.
  int32_t decides_at = 0;
  bool is_periodic = false;  // that line is alike on all ranks: "if step % 8 == 0"
};

}  // namespace rollcall
