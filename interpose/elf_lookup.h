// A function of the C library found in its own ELF tables, where nobody can be asked
// for it: musl has no dlvsym, and its dlsym is what we stand in front of.
#pragma once

namespace rollcall {

// The first object loaded that defines the function `name` and is not this library;
// nullptr: none does. Opens nothing and allocates nothing.
void* FindFunctionInElf(const char* name);

}  // namespace rollcall
