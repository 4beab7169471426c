// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/elf_lookup.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/real.h"

#include <dlfcn.h>
#include <string.h>

// Not in musl.
#pragma weak dlvsym

// The wrappers' addresses, by symbol: some of the functions are in no header at hand, some are
// macros there.
#define CALL(symbol, op, code, kind) extern "C" const char wrapper_##symbol[] __asm__(#symbol);
#define ALIAS(symbol, op) extern "C" const char wrapper_##symbol[] __asm__(#symbol);
#include "interpose/calls.def"
#undef CALL

namespace rollcall {

std::atomic<void*> real_functions[static_cast<int>(Fn::kCount)];

namespace {

struct Name {
  const char* symbol;
  const void* wrapper;
};

const Name kNames[] = {
#define CALL(symbol, op, code, kind) {#symbol, wrapper_##symbol},
#define ALIAS(symbol, op) {#symbol, wrapper_##symbol},
#include "interpose/calls.def"
#undef CALL
};

bool IsNccl(const char* name) {
  return strncmp(name, "nccl", 4) == 0 || strncmp(name, "msccl", 5) == 0;
}

bool IsOurs(const void* address) {
  for (const Name& name : kNames) {
    if (name.wrapper == address) return true;
  }
  return false;
}

// In any object, also one loaded RTLD_LOCAL. The object is opened only when it is known and the
// loader's list of objects is left: opening from within that listing takes the loader's two locks
// in the other order than another thread's dlopen. The reference is kept, so that an object that
// we call into is not unloaded.
void* LookInObjects(const char* name) {
  constexpr uint32_t kMostObjects = 16;
  ElfObject object;
  for (uint32_t i = 0; i < kMostObjects && FindObjectWith(name, i, &object); ++i) {
    if (object.name[0] == '\0') continue;
    void* handle = dlopen(object.name, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) continue;
    void* address = RealDlsym()(handle, name);
    if (address != nullptr && !IsOurs(address)) return address;
  }
  return nullptr;
}

void* LookInLibraries(const char* const* sonames, int flags, const char* name) {
  for (; *sonames != nullptr; ++sonames) {
    void* handle = dlopen(*sonames, flags | RTLD_LAZY);
    if (handle == nullptr) continue;
    void* address = RealDlsym()(handle, name);
    if (address != nullptr && !IsOurs(address)) return address;
  }
  return nullptr;
}

// Whose functions begin so, and where they live.
struct Family {
  const char* prefix;
  const char* const* libraries;
  bool load;  // where nobody has: they may have asked us first, and then not loaded it
};

const char* const kNcclLibraries[] = {"libnccl.so.2", "librccl.so.1", nullptr};
const char* const kRuntimeLibraries[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                         nullptr};
const char* const kDriverLibraries[] = {"libcuda.so.1", nullptr};
const char* const kHipLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                     nullptr};
const char* const kMpiLibraries[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", nullptr};

const Family kFamilies[] = {{"nccl", kNcclLibraries, true},
                            {"cuda", kRuntimeLibraries, true},
                            {"cu", kDriverLibraries, true},
                            {"hip", kHipLibraries, true},
                            {"MPI_", kMpiLibraries, false}};

const Family& FindFamily(const char* symbol) {
  for (const Family& family : kFamilies) {
    if (strncmp(symbol, family.prefix, strlen(family.prefix)) == 0) return family;
  }
  return kFamilies[0];
}

void* Find(const char* symbol) {
  // Another interposer that was preloaded after us wants its turn too.
  void* address = RealDlsym()(RTLD_NEXT, symbol);
  if (address != nullptr && !IsOurs(address)) return address;
  char name[64];
  RealName(symbol, name);
  address = RealDlsym()(RTLD_DEFAULT, name);
  if (address != nullptr && !IsOurs(address)) return address;

  const Family& family = FindFamily(symbol);
  address = LookInLibraries(family.libraries, RTLD_NOLOAD, name);
  if (address != nullptr) return address;

  address = LookInObjects(name);
  if (address != nullptr) return address;

  // nccl4py asks for RTLD_DEFAULT first, gets our wrapper, and then never loads
  // NCCL itself.
  return family.load ? LookInLibraries(family.libraries, 0, name) : nullptr;
}

}  // namespace

bool IsWhatLinkedCallsGet(const char* symbol, const void* real) {
  const KeepErrno keep_errno;
  char name[64];
  RealName(symbol, name);
  bool same = RealDlsym()(RTLD_NEXT, symbol) == real || RealDlsym()(RTLD_NEXT, name) == real;
  for (const char* const* soname = FindFamily(symbol).libraries; !same && *soname != nullptr;
       ++soname) {
    void* handle = dlopen(*soname, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) continue;
    same = RealDlsym()(handle, name) == real;
    dlclose(handle);
  }
  dlerror();  // our failed look-ups are not the program's
  return same;
}

// "ncclX" -> "pncclX", "MPI_X" -> "PMPI_X"; CUDA has no such second name.
void RealName(const char* symbol, char (&out)[64]) {
  char* at = out;
  if (IsNccl(symbol)) *at++ = 'p';
  if (strncmp(symbol, "MPI_", 4) == 0) *at++ = 'P';
  strncpy(at, symbol, sizeof(out) - 2);
  out[sizeof(out) - 1] = '\0';
}

DlsymFn RealDlsym() {
  static std::atomic<DlsymFn> real{nullptr};
  DlsymFn found = real.load(std::memory_order_acquire);
  if (__builtin_expect(found != nullptr, 1)) return found;
  // musl, whose programs must not fail because they inherited us, has no versions.
  if (&dlvsym == nullptr) found = reinterpret_cast<DlsymFn>(FindFunctionInElf("dlsym"));
  // dlsym lives under several versions; any of them will do.
  const char* const versions[] = {ROLLCALL_OLDEST_GLIBC, "GLIBC_2.34", "GLIBC_2.17"};
  for (const char* version : versions) {
    if (found != nullptr) break;
    found = reinterpret_cast<DlsymFn>(dlvsym(RTLD_NEXT, "dlsym", version));
  }
  real.store(found, std::memory_order_release);
  return found;
}

namespace {

// `*kept`: it may be remembered.
void* FindAndKeep(const char* symbol, bool* kept) {
  if (RealDlsym() == nullptr) return nullptr;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;  // a thread that ended in there would keep the loader's lock
  void* address = Find(symbol);
  *kept = address != nullptr && KeepLoaded(address);
  dlerror();  // our failed look-ups are not the program's
  return address;
}

}  // namespace

void* FindRealByName(const char* symbol) {
  bool kept = false;
  void* address = FindAndKeep(symbol, &kept);
  return kept ? address : nullptr;
}

// What must not be remembered is looked up again for the next call.
void* FindReal(Fn fn) {
  bool kept = false;
  void* address = FindAndKeep(kNames[static_cast<int>(fn)].symbol, &kept);
  if (kept) real_functions[static_cast<int>(fn)].store(address, std::memory_order_release);
  return address;
}

void* FindWrapper(const char* name, Fn* fn) {
  for (int i = 0; i < static_cast<int>(Fn::kCount); ++i) {
    if (strcmp(kNames[i].symbol, name) == 0) {
      *fn = static_cast<Fn>(i);
      return const_cast<void*>(kNames[i].wrapper);
    }
  }
  return nullptr;
}

}  // namespace rollcall
