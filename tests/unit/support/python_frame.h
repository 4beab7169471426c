// SPDX-License-Identifier: Apache-2.0
// Frames of Python in the stacks of tests.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline void AddPythonFrame(const std::string& file, const std::string& function, int line,
                           v1::ThreadStack* thread) {
  v1::Frame* frame = thread->add_frames();
  frame->set_python(true);
  frame->set_file(file);
  frame->set_function(function);
  frame->set_line(line);
}

}  // namespace rollcall
