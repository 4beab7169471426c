// SPDX-License-Identifier: Apache-2.0
// Where a process stands in its program, by one sample of its stacks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/program_frame.h"

namespace rollcall {

struct StackPlace {
  // "/x/train.py:31 in upload_checkpoint": the innermost line that is no library's; "": none is
  // known.
  std::string at;
  std::string inside;   // "queue.get": the library's function that this line called; "": none
  bool sleeps = false;  // the thread sleeps in the kernel
  // The functions of that thread, innermost first, each between blanks: " futex queue.get
  // train.upload_checkpoint ". Python's have the name of their file.
  std::string functions;
  // The program's own functions of that thread, outermost first.
  std::vector<ProgramFrame> program = {};
};

// Where one of its threads stands.
struct ThreadPlace {
  uint32_t tid = 0;
  std::string name;  // of the thread
  StackPlace place;
};

}  // namespace rollcall
