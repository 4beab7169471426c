// SPDX-License-Identifier: Apache-2.0
// The wrapper of dlsym. ctypes users (vLLM, SGLang), JAX, CuPy and others fetch NCCL's functions
// from a handle, and symbol interposition does not reach them.
//
// The C library resolves RTLD_NEXT and RTLD_DEFAULT by the caller's return address. For those the
// stub jumps, so that the real dlsym sees the caller. Everything else goes to
// rollcall_dlsym_look_up(), which passes every name outside calls.def to the real dlsym and so
// leaves the state of dlerror() as it was.
//
// The program gets a wrapper only if the real look-up succeeds, because programs probe for newer
// functions. The wrapper is bound to the function that the look-up found, and that function's
// library stays loaded. A second NCCL in the same process gets its own functions back, as without
// the library, and reports its calls to our profiler plugin (profiler_plugin.h). So does an NCCL
// that the loader cannot keep loaded.
#include "interpose/old_glibc.h"

#include <dlfcn.h>
#include <string.h>

#include "interpose/calls/profiler_plugin.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/python/python_errors.h"
#include "interpose/real.h"

namespace rollcall {
namespace {

void* Twin(void* handle, const char* name, void* real) {
  char twin[kLongestSymbol];
  RealName(name, twin);
  if (strcmp(twin, name) == 0) return real;
  void* found = RealDlsym()(handle, twin);
  if (found != nullptr) return found;
  dlerror();  // hide our failed look-up from the program
  return real;
}

bool Keep(const void* real) {
  const KeepErrno keep_errno;
  const bool kept = KeepLoaded(real);
  if (!kept) dlerror();
  return kept;
}

// Whether the wrapper calls `real`, now or from now on. The wrapper also serves linked calls, also
// of libraries that are loaded later, so it may bind only what those calls would get.
bool Bind(Fn fn, const char* name, void* real) {
  std::atomic<void*>& slot = real_functions[static_cast<int>(fn)];
  void* bound = slot.load(std::memory_order_acquire);
  if (bound != nullptr) return bound == real;
  if (!LinkedCallsReach(name, real) || !Keep(real)) return false;
  return slot.compare_exchange_strong(bound, real, std::memory_order_acq_rel) || bound == real;
}

bool MayBeWrapped(const char* name) { return strchr("nchmMHaou", name[0]) != nullptr; }

}  // namespace

extern "C" __attribute__((visibility("hidden"))) void* rollcall_dlsym_real() {
  return reinterpret_cast<void*>(RealDlsym());
}

extern "C" __attribute__((visibility("hidden"))) void* rollcall_dlsym_look_up(void* handle,
                                                                              const char* name) {
  const DlsymFn real_dlsym = RealDlsym();
  void* real = real_dlsym(handle, name);
  if (real == nullptr || !MayBeWrapped(name)) return real;
  if (strncmp(name, kProfilerPrefix, sizeof(kProfilerPrefix) - 1) == 0) {
    return ProfilerTableFor(name, real);
  }
  Fn fn;
  void* wrapper = FindWrapper(name, &fn);
  if (wrapper == nullptr || real == wrapper) return real;
  WatchPythonThreads();
  return Bind(fn, name, Twin(handle, name, real)) ? wrapper : real_dlsym(handle, name);
}

}  // namespace rollcall

// The exported dlsym. Written in assembly: at -O0 a compiler would not turn the call into a jump,
// and the C library would resolve for us as the caller.
#if defined(__x86_64__)
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  leaq 1(%rdi), %rax
  cmpq $1, %rax
  jbe 1f
  jmp rollcall_dlsym_look_up
1:
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call rollcall_dlsym_real
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  add x9, x0, #1
  cmp x9, #1
  b.ls 1f
  b rollcall_dlsym_look_up
1:
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  stp x0, x1, [sp, #16]
  bl rollcall_dlsym_real
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  br x16
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#endif
