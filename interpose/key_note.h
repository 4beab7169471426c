// SPDX-License-Identifier: Apache-2.0
// The key of a store that a thread waits for, on that thread's own stack.
//
// Before its first communicator a process has no segment, and a rank may wait for a key then. The
// wrapper keeps a note in its frame while the real function runs, and the agent finds the note in
// its copy of the stack, inside a frame of this library. A reader treats it as hostile.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rollcall {

struct alignas(8) KeyNote {
  uint64_t magic[2];
  uint64_t keys;  // the number of keys that the thread waits for
  // The first and, of several, the last of them, with a 0 at the end; of a longer key its number
  // (key_number.h) and its end.
  char first[120], last[120];
};
static_assert(sizeof(KeyNote) == 264);

// "rollcall: key 1" and a 0, as two words. Another layout gets another number.
inline constexpr uint64_t kKeyNoteMagic[2] = {0x6c6c61636c6c6f72, 0x00312079656b203a};

}  // namespace rollcall
