// SPDX-License-Identifier: Apache-2.0
// Functions of shared libraries that call back, so that a stack contains their frames. Their names
// say how the library was built, CMakeLists.txt has the flags.
#pragma once

extern "C" {
void victim_library_call(void (*function)());
void victim_no_unwind_call(void (*function)());
void victim_debug_frame_call(void (*function)());
void victim_frame_pointer_call(void (*function)());
void victim_no_table_call(void (*function)());
void victim_split_dwarf_call(void (*function)());
void victim_no_aranges_call(void (*function)());
void victim_cf_protection_call(void (*function)());
}
