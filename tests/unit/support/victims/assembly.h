// SPDX-License-Identifier: Apache-2.0
// Functions as people write them by hand: without unwind information, or with wrong one.
#pragma once

extern "C" {
// Saves registers as it likes and uses the frame pointer for something else.
void assembly_call(void (*function)());
[[noreturn]] void assembly_call_for_good(void (*function)());
// Has unwind information that an unwinder follows without end.
void assembly_with_endless_rule(void (*function)());
// A signal handler returns to it.
void assembly_restorer();
}
