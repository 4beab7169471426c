// SPDX-License-Identifier: Apache-2.0
// Where the functions that we wrap really are.
//
// A real function is whatever comes after us in the global scope: NCCL, MPI, or the
// next interposer. RTLD_NEXT does not see objects loaded RTLD_LOCAL, as Python
// loads them, so then it is found by its `pncclX` name, which nobody interposes,
// among all the objects loaded (linked, RTLD_LOCAL, static inside another
// library), and only when there is none by loading libnccl.so.2 ourselves. MPI has
// such names too, PMPI_X. The object of a function that we remember stays loaded
// (keep_loaded.h).
#pragma once

#include <atomic>

#include "interpose/mpi_api.h"
#include "interpose/nccl_api.h"

namespace rollcall {

enum class Fn : int {
#define CALL(symbol, op, code, kind) k_##symbol,
#define ALIAS(symbol, op) k_##symbol,
#include "interpose/calls.def"
#undef CALL
  kCount,
};

extern std::atomic<void*> real_functions[static_cast<int>(Fn::kCount)];

// Finds it the slow way and remembers it, where its object is kept. nullptr when no loaded or loadable
// library has it. Keeps errno; may be called from any thread.
void* FindReal(Fn fn);

// The real function or variable named `symbol`, which is not in calls.def (ncclCommCount); its
// object is kept. nullptr: there is none, or none that is kept.
void* FindRealByName(const char* symbol);

inline void* Real(Fn fn) {
  void* real = real_functions[static_cast<int>(fn)].load(std::memory_order_acquire);
  return __builtin_expect(real != nullptr, 1) ? real : FindReal(fn);
}

// Whether a library that is linked with NCCL (or CUDA, HIP, MPI) gets `real` for `symbol`, or will
// when it is loaded: `real` is in the global scope, or in the library of the usual name. Calls the
// loader.
bool IsWhatLinkedCallsGet(const char* symbol, const void* real);

// The C library's own dlsym, also before our constructor has run.
using DlsymFn = void* (*)(void*, const char*);
DlsymFn RealDlsym();

// The name by which the library at hand has a function that nobody interposes;
// `symbol` itself where there is none.
void RealName(const char* symbol, char (&out)[64]);

// The exported wrapper called `name`; nullptr where calls.def has none. `*fn`
// says which.
void* FindWrapper(const char* name, Fn* fn);

}  // namespace rollcall

// The real function `symbol`, typed. May be null.
#define ROLLCALL_REAL(symbol) \
  (reinterpret_cast<decltype(&::symbol)>(::rollcall::Real(::rollcall::Fn::k_##symbol)))

#define ROLLCALL_EXPORT __attribute__((visibility("default")))
