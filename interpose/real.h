// SPDX-License-Identifier: Apache-2.0
// Finds the real functions behind the wrappers.
//
// A real function is the next one after ours in the global scope: of NCCL, of MPI, or of the next
// interposer. RTLD_NEXT does not find objects loaded RTLD_LOCAL, as Python loads them. For those
// the library looks for the `pncclX` name, which no library interposes, in all loaded objects
// (linked, RTLD_LOCAL, static inside another library). If no object has it, the library loads
// libnccl.so.2 itself. MPI has such names too, PMPI_X. PyTorch's functions have only their own
// names, and are in libtorch_cpu.so. The object of a function that the library keeps stays loaded
// (keep_loaded.h).
#pragma once

#include <stddef.h>

#include <atomic>

#include "interpose/hccl_api.h"
#include "interpose/mpi_api.h"
#include "interpose/nccl_api.h"
#include "interpose/nvshmem_api.h"
#include "interpose/oneccl_api.h"
#include "interpose/oneccl_cpp_api.h"
#include "interpose/torch_api.h"
#include "interpose/ucc_api.h"

namespace rollcall {

enum class Fn : int {
#define CALL(symbol, op, code, kind) k_##symbol,
#define ALIAS(symbol, op) k_##symbol,
#include "interpose/calls.def"
#undef CALL
  kCount,
};

extern std::atomic<void*> real_functions[static_cast<int>(Fn::kCount)];

// Looks the function up, and keeps its address if KeepLoaded() allows. nullptr if no loaded or
// loadable library has the function. Keeps errno. Any thread may call it.
void* FindReal(Fn fn);

// The real function or variable `symbol`, which is not in calls.def (ncclCommCount). Its object
// stays loaded. nullptr if no object has it, or the loader cannot keep the object.
void* FindRealByName(const char* symbol);

inline void* Real(Fn fn) {
  void* real = real_functions[static_cast<int>(fn)].load(std::memory_order_acquire);
  return __builtin_expect(real != nullptr, 1) ? real : FindReal(fn);
}

// Whether a library linked with NCCL (or CUDA, HIP, MPI) gets `real` for `symbol`, now or when it
// is loaded: `real` is in the global scope, or in the library with the usual file name. Calls the
// loader.
bool LinkedCallsReach(const char* symbol, const void* real);

// The C library's dlsym. Works before our constructor has run, also for a sanitizer that starts.
// The first call enters the loader, so a caller inside a call of NCCL holds a KeepCancel.
using DlsymFn = void* (*)(void*, const char*);
DlsymFn RealDlsym();

// The name of the function that no library interposes, "pncclX" or "PMPI_X"; `symbol` itself if
// there is no such name.
inline constexpr size_t kLongestSymbol = 256;
void RealName(const char* symbol, char (&out)[kLongestSymbol]);

// The exported wrapper of `name`, and in `*fn` its number. nullptr if calls.def has no such name.
void* FindWrapper(const char* name, Fn* fn);

}  // namespace rollcall

// The real function `symbol`, typed. May be nullptr.
#define ROLLCALL_REAL(symbol) \
  (reinterpret_cast<decltype(&::symbol)>(::rollcall::Real(::rollcall::Fn::k_##symbol)))

// Of a wrapper of MPI: the name that it has in this file, MPI_X or PMPI_X (calls_pmpi.cc), and the
// real function of that name.
#ifdef ROLLCALL_PMPI
#define ROLLCALL_MPI_NAME(symbol) P##symbol
#else
#define ROLLCALL_MPI_NAME(symbol) symbol
#endif
#define ROLLCALL_MPI(symbol) ROLLCALL_MPI_NAME(symbol)
#define ROLLCALL_FN(symbol) ::rollcall::Fn::k_##symbol
#define ROLLCALL_FN_OF(symbol) ROLLCALL_FN(symbol)
#define ROLLCALL_REAL_MPI(symbol) \
  (reinterpret_cast<decltype(&::symbol)>(::rollcall::Real(ROLLCALL_FN_OF(ROLLCALL_MPI(symbol)))))

#define ROLLCALL_EXPORT __attribute__((visibility("default")))
