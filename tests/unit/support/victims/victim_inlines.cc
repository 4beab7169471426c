// SPDX-License-Identifier: Apache-2.0
// A library function with an inlined call. VICTIM_CALL is its name.
#include "victim_library.h"

namespace {

inline __attribute__((always_inline)) void InlinedInner(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}

}  // namespace

extern "C" void VICTIM_CALL(void (*function)()) {
  InlinedInner(function);
  asm volatile("" ::: "memory");
}
