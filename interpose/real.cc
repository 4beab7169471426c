// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/real.h"

#include <dlfcn.h>
#include <string.h>

#include "interpose/elf_lookup.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"

// musl lacks it.
#pragma weak dlvsym

// The addresses of the wrappers, by symbol. Some functions are in no header that we build with, and
// some are macros there.
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

// Searches all loaded objects, also those loaded RTLD_LOCAL. FindDefiningObject() finds the object
// while the loader lists its objects, and only afterwards do we open it: opening within the listing
// would take the loader's two locks in another order than dlopen in another thread. We keep the
// reference, so that the object is not unloaded.
void* FindInObjects(const char* name) {
  constexpr uint32_t kMostObjects = 16;
  ElfObject object;
  for (uint32_t i = 0; i < kMostObjects && FindDefiningObject(name, i, &object); ++i) {
    if (object.name[0] == '\0') continue;
    void* handle = dlopen(object.name, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) continue;
    void* address = RealDlsym()(handle, name);
    if (address != nullptr && !IsOurs(address)) return address;
  }
  return nullptr;
}

void* FindInLibraries(const char* const* sonames, int flags, const char* name) {
  for (; *sonames != nullptr; ++sonames) {
    void* handle = dlopen(*sonames, flags | RTLD_LAZY);
    if (handle == nullptr) continue;
    void* address = RealDlsym()(handle, name);
    if (address != nullptr && !IsOurs(address)) return address;
  }
  return nullptr;
}

// A library family: the prefix of its functions, and the file names of its libraries.
struct Family {
  const char* prefix;
  const char* const* libraries;
  bool load;  // load the library if the process has not: the program may have asked dlsym first
};

const char* const kNcclLibraries[] = {"libnccl.so.2", "librccl.so.1", nullptr};
const char* const kRuntimeLibraries[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                         nullptr};
const char* const kDriverLibraries[] = {"libcuda.so.1", nullptr};
const char* const kHipLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                     nullptr};
const char* const kMpiLibraries[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", nullptr};
const char* const kHcclLibraries[] = {"libhccl.so", nullptr};
const char* const kAscendLibraries[] = {"libascendcl.so", nullptr};
const char* const kOneCclLibraries[] = {"libccl.so.2", "libccl.so.1", nullptr};
const char* const kUccLibraries[] = {"libucc.so.1", nullptr};
const char* const kNvshmemLibraries[] = {"libnvshmem_host.so.3", nullptr};
const char* const kTorchLibraries[] = {"libtorch_cpu.so", nullptr};

const Family kFamilies[] = {
    {"nccl", kNcclLibraries, true},         {"cuda", kRuntimeLibraries, true},
    {"cu", kDriverLibraries, true},         {"hip", kHipLibraries, true},
    {"MPI_", kMpiLibraries, false},         {"PMPI_", kMpiLibraries, false},
    {"ompi_", kMpiLibraries, false},  // variables, for which any MPI is asked
    {"Hccl", kHcclLibraries, false},        {"aclrt", kAscendLibraries, false},
    {"oneccl", kOneCclLibraries, false},    {"ucc_", kUccLibraries, false},
    {"_ZN3ccl", kOneCclLibraries, false},   {"_ZNK3ccl", kOneCclLibraries, false},
    {"_ZTVN3ccl", kOneCclLibraries, false}, {"nvshmem", kNvshmemLibraries, false},
    {"_ZN4c10d", kTorchLibraries, false},   {"aoti_torch_", kTorchLibraries, false}};

const Family& FindFamily(const char* symbol) {
  for (const Family& family : kFamilies) {
    if (strncmp(symbol, family.prefix, strlen(family.prefix)) == 0) return family;
  }
  return kFamilies[0];
}

void* Find(const char* symbol) {
  // The next interposer in the preload order comes before the library itself.
  void* address = RealDlsym()(RTLD_NEXT, symbol);
  if (address != nullptr && !IsOurs(address)) return address;
  char name[kLongestSymbol];
  RealName(symbol, name);
  address = RealDlsym()(RTLD_DEFAULT, name);
  if (address != nullptr && !IsOurs(address)) return address;

  const Family& family = FindFamily(symbol);
  address = FindInLibraries(family.libraries, RTLD_NOLOAD, name);
  if (address != nullptr) return address;

  address = FindInObjects(name);
  if (address != nullptr) return address;

  // nccl4py asks for RTLD_DEFAULT first, gets our wrapper, and then does not load NCCL.
  return family.load ? FindInLibraries(family.libraries, 0, name) : nullptr;
}

}  // namespace

bool LinkedCallsReach(const char* symbol, const void* real) {
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;  // as in FindAndKeep()
  char name[kLongestSymbol];
  RealName(symbol, name);
  bool same = RealDlsym()(RTLD_NEXT, symbol) == real || RealDlsym()(RTLD_NEXT, name) == real;
  for (const char* const* soname = FindFamily(symbol).libraries; !same && *soname != nullptr;
       ++soname) {
    void* handle = dlopen(*soname, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) continue;
    same = RealDlsym()(handle, name) == real;
    dlclose(handle);
  }
  dlerror();  // hide our failed look-ups from the program
  return same;
}

// "ncclX" -> "pncclX", "MPI_X" -> "PMPI_X". CUDA has no such names.
void RealName(const char* symbol, char (&out)[kLongestSymbol]) {
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
  // musl has no symbol versions. Programs that use it may inherit LD_PRELOAD, and must not fail.
  if (&dlvsym == nullptr) found = reinterpret_cast<DlsymFn>(FindFunctionInElf("dlsym"));
  // glibc has dlsym under several versions. Each of them works.
  const char* const versions[] = {ROLLCALL_OLDEST_GLIBC, "GLIBC_2.34", "GLIBC_2.17"};
  for (const char* version : versions) {
    if (found != nullptr) break;
    found = reinterpret_cast<DlsymFn>(dlvsym(RTLD_NEXT, "dlsym", version));
  }
  real.store(found, std::memory_order_release);
  return found;
}

namespace {

// `*kept` is set to whether the caller may keep the address.
void* FindAndKeep(const char* symbol, bool* kept) {
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;  // a thread cancelled in the loader would keep the loader's lock
  if (RealDlsym() == nullptr) return nullptr;
  void* address = Find(symbol);
  *kept = address != nullptr && KeepLoaded(address);
  dlerror();  // hide our failed look-ups from the program
  return address;
}

}  // namespace

void* FindRealByName(const char* symbol) {
  bool kept = false;
  void* address = FindAndKeep(symbol, &kept);
  return kept ? address : nullptr;
}

// An address that KeepLoaded() refuses is looked up again by the next call.
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
