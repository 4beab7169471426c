// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/keep_loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#include <atomic>

#include "interpose/keep_cancel.h"

// musl lacks these functions. It never unloads a library.
#pragma weak dladdr1
#pragma weak dlmopen
#pragma weak dlinfo

namespace rollcall {
namespace {

// Address ranges of objects that stay loaded, so that the library asks the loader once for each
// object. When the table is full, the library asks again each time.
struct Range {
  std::atomic<uintptr_t> begin, end;
};
constexpr uint32_t kRanges = 64;
Range kept[kRanges];
std::atomic<uint32_t> ranges_claimed{0};

bool IsKept(uintptr_t address) {
  for (const Range& range : kept) {
    const uintptr_t end = range.end.load(std::memory_order_acquire);
    if (end == 0) return false;
    if (address >= range.begin.load(std::memory_order_relaxed) && address < end) return true;
  }
  return false;
}

// The end of the object that starts at `base`, from the program headers in its first page. 0 if the
// headers lie elsewhere.
uintptr_t FindEnd(uintptr_t base) {
  constexpr size_t kFirstPage = 4096;
  const auto* file = reinterpret_cast<const ElfW(Ehdr)*>(base);
  if (file->e_phoff + file->e_phnum * sizeof(ElfW(Phdr)) > kFirstPage) return 0;
  const auto* part = reinterpret_cast<const ElfW(Phdr)*>(base + file->e_phoff);
  ElfW(Addr) first = UINTPTR_MAX, end = 0;
  for (int i = 0; i < file->e_phnum; ++i) {
    if (part[i].p_type != PT_LOAD) continue;
    if (part[i].p_vaddr < first) first = part[i].p_vaddr;
    if (part[i].p_vaddr + part[i].p_memsz > end) end = part[i].p_vaddr + part[i].p_memsz;
  }
  return end == 0 ? 0 : base + (end - first);
}

void Remember(uintptr_t base) {
  const uintptr_t end = FindEnd(base);
  if (end == 0) return;
  const uint32_t index = ranges_claimed.fetch_add(1);
  if (index >= kRanges) {
    ranges_claimed.store(kRanges);
    return;
  }
  kept[index].begin.store(base, std::memory_order_relaxed);
  kept[index].end.store(end, std::memory_order_release);
}

}  // namespace

bool KeepLoaded(const void* address) {
  if (&dladdr1 == nullptr || &dlmopen == nullptr || &dlinfo == nullptr) return true;
  if (IsKept(reinterpret_cast<uintptr_t>(address))) return true;
  const KeepCancel keep_cancel;  // a thread cancelled in the loader would keep the loader's lock
  Dl_info about;
  void* object = nullptr;
  if (dladdr1(address, &about, &object, RTLD_DL_LINKMAP) == 0 || object == nullptr) return false;
  Lmid_t space = LM_ID_BASE;
  if (dlinfo(object, RTLD_DI_LMID, &space) != 0) return false;
  // The loader finds the object by name among the loaded ones, even if its file is gone. The
  // library keeps the reference.
  constexpr int kFlags = RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE;
  const char* name = static_cast<const link_map*>(object)->l_name;
  void* handle = space == LM_ID_BASE ? dlopen(name, kFlags) : dlmopen(space, name, kFlags);
  // glibc's handle is the link_map. Another handle belongs to another object of the same name.
  if (handle != object) return false;
  Remember(reinterpret_cast<uintptr_t>(about.dli_fbase));
  return true;
}

}  // namespace rollcall
