// SPDX-License-Identifier: Apache-2.0
// Keeps the objects loaded whose addresses we remember.
//
// The program may dlclose() a library whose functions we have bound; the next call through us would
// then run whatever has been mapped there since.
#pragma once

namespace rollcall {

// True: the object that holds `address` stays loaded until the process ends, whatever is closed. False:
// the loader cannot promise that, and `address` must not be remembered. Calls the loader: see
// docs/decisions/loader.md, for where that is allowed. May change errno and dlerror's state.
bool KeepLoaded(const void* address);

}  // namespace rollcall
