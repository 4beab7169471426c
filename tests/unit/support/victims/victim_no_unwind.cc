// SPDX-License-Identifier: Apache-2.0
#include "victim_library.h"

namespace {

__attribute__((noinline)) void Inner(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}

}  // namespace

#ifndef VICTIM_CALL
#define VICTIM_CALL victim_no_unwind_call
#endif

extern "C" void VICTIM_CALL(void (*function)()) {
  Inner(function);
  asm volatile("" ::: "memory");
}
