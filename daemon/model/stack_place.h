// SPDX-License-Identifier: Apache-2.0
// Where a process stands in its program, by one sample of its stacks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/program_frame.h"

namespace rollcall {

// An exception of Python.
struct PlaceException {
  std::string type;  // "ValueError"; empty without an exception
  std::string text;
  std::string at;  // the program's line that it came from, as in StackPlace; empty if unknown
};

// What a thread waits for, beside the functions that it is in.
enum class EndKind : uint8_t {
  kNone,
  kPipe,
  kSocket,
  kProcess,  // the end of one
};

// Stands among the functions of a thread that waits for what a child of its process writes or
// reads.
inline constexpr char kPipeOfAChild[] = "<pipe_of_a_child>";
// Where no frame shows it: PyTorch's calls run no other code of the program.
inline constexpr char kSignalInACall[] = "<signal_handler_in_a_call>";

struct StackPlace {
  // "/x/train.py:31 in upload_checkpoint": the innermost line that is not in a library; empty if
  // unknown.
  std::string at;
  std::string inside;   // "queue.get": the library's function that this line called, or empty
  bool sleeps = false;  // the thread sleeps in the kernel
  // The functions of that thread, innermost first, each between blanks: " futex queue.get
  // train.upload_checkpoint ". Python's have the name of their file.
  std::string functions;
  // The program's own functions of that thread, outermost first.
  std::vector<ProgramFrame> program = {};
  PlaceException handles = {};  // the thread is in an except, a finally or an __exit__()
  // Processes of its host at the other end of the pipe or socket that the thread waits for.
  std::vector<int32_t> other_end = {};
  EndKind end = EndKind::kNone;
  std::string key = {};  // of a store, as in v1::ThreadStack; empty if there is none, or unknown
};

// Where one of its threads stands.
struct ThreadPlace {
  uint32_t tid = 0;
  std::string name;  // of the thread
  StackPlace place;
};

}  // namespace rollcall
