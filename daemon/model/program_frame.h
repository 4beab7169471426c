// SPDX-License-Identifier: Apache-2.0
// The program's own functions on a stack, with the blocks of the source around the line at which
// each stands. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rollcall {

// A block of the source, by its lines: from the line that begins it to its last one.
struct CodeBlock {
  enum class Kind : uint8_t {
    kLoop,       // for, while
    kCondition,  // if, elif, else, match, case
    kHandler,    // except
  };
  Kind kind = Kind::kLoop;
  int32_t first = 0, last = 0;
  // Of a loop: the first line that may end a pass before its end (continue, except), and the first
  // that ends the loop (break, return), or 0. Of a condition, `ends_at`: its last line, if that
  // leaves the pass or the function (also continue, raise), or 0.
  int32_t skips_at = 0, ends_at = 0;
  // For a condition, the line of the if or match that decides between it and its other branches.
  int32_t decides_at = 0;
  bool is_periodic = false;  // that line is alike on all ranks: "if step % 8 == 0"
};

struct ProgramFrame {
  std::string function;
  std::string file;
  int32_t line = 0;
  bool has_source = false;        // `blocks` lists the blocks; else they are not known
  std::vector<CodeBlock> blocks;  // around the line, outermost first
  int32_t returns_at = 0;         // the last `return` of the function before the line; 0: none
};

// More frames do not help a person, and each costs memory for each process.
inline constexpr size_t kMostProgramFrames = 24;
inline constexpr size_t kMostCodeBlocks = 8;  // of a frame

}  // namespace rollcall
