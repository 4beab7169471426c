// SPDX-License-Identifier: Apache-2.0
// Functions of two shared libraries that call back, so that a stack contains their frames. One
// library is ordinary, the other has frame pointers and no unwind information.
#pragma once

extern "C" {
void victim_library_call(void (*function)());
void victim_no_unwind_call(void (*function)());
void victim_debug_frame_call(void (*function)());
}
