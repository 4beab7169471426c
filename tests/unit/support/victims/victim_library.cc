// SPDX-License-Identifier: Apache-2.0
#include "victim_library.h"

namespace {

__attribute__((noinline)) void Inner(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}

}  // namespace

extern "C" void victim_library_call(void (*function)()) {
  Inner(function);
  asm volatile("" ::: "memory");
}
