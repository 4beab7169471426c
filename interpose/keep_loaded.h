// SPDX-License-Identifier: Apache-2.0
// Keeps an object loaded while the library holds addresses within it.
//
// The program may dlclose() a library whose functions we have bound. Without this, our next call
// would run whatever is mapped at that address by then.
#pragma once

namespace rollcall {

// True if the object that holds `address` stays loaded until the process ends, whatever the program
// closes. If false, the loader cannot promise that, and the caller must not keep `address`. Calls
// the loader; docs/decisions/loader.md lists where the library may do that. May change errno and
// the state of dlerror().
bool KeepLoaded(const void* address);

}  // namespace rollcall
