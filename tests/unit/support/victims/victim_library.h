// SPDX-License-Identifier: Apache-2.0
// Functions of two shared libraries that call back, so that a stack leads through them: one as
// libraries usually are, one without unwind information (but with frame pointers).
#pragma once

extern "C" {
void victim_library_call(void (*function)());
void victim_no_unwind_call(void (*function)());
void victim_debug_frame_call(void (*function)());
}
