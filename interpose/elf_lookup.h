// SPDX-License-Identifier: Apache-2.0
// Functions found in the ELF tables of what is loaded: where nobody can be asked (musl has no
// dlvsym, and its dlsym is what we stand in front of), and to learn which object has one.
#pragma once

#include <stdint.h>

namespace rollcall {

struct ElfObject {
  void* address;    // of the function, or of what chooses it (STT_GNU_IFUNC)
  char name[4096];  // as the loader knows the object; "": the program, or too long
};

// The object that defines the function `symbol` and is not this library, after passing over `skip`
// others; false: there is none. Opens nothing, allocates nothing, and calls nothing of the loader's
// while the loader lists its objects. The object may be gone when this returns.
bool FindObjectWith(const char* symbol, uint32_t skip, ElfObject* out);

// The first of them; nullptr: none.
void* FindFunctionInElf(const char* name);

}  // namespace rollcall
