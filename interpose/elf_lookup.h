// SPDX-License-Identifier: Apache-2.0
// Finds functions in the ELF tables of loaded objects. musl lacks dlvsym, and our dlsym hides
// musl's. The tables also show which object defines a function.
#pragma once

#include <stdint.h>

namespace rollcall {

struct ElfObject {
  void* address;    // of the function, or of its resolver (STT_GNU_IFUNC)
  char name[4096];  // the loader's name of the object; empty means the program, or too long a name
};

// Finds an object other than this library that defines the function `symbol`, after skipping `skip`
// such objects. False if there is none. Opens nothing, allocates nothing, and calls no function of
// the loader while the loader lists its objects. The object may be unloaded when this returns.
bool FindDefiningObject(const char* symbol, uint32_t skip, ElfObject* out);

// Returns the address in the first such object, or nullptr.
void* FindFunctionInElf(const char* name);

}  // namespace rollcall
