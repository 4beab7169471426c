// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/keep_loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#include <atomic>

// Not in musl, which never unloads anything.
#pragma weak dladdr1
#pragma weak dlmopen
#pragma weak dlinfo

namespace rollcall {
namespace {

// Objects that are kept already, so that each is asked for once. One that finds no place is asked
// for again.
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

// By the object's program headers, which lie in its first page; 0: they do not.
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
  Dl_info about;
  void* object = nullptr;
  if (dladdr1(address, &about, &object, RTLD_DL_LINKMAP) == 0 || object == nullptr) return false;
  Lmid_t space = LM_ID_BASE;
  if (dlinfo(object, RTLD_DI_LMID, &space) != 0) return false;
  // Found by its name among what is loaded, so also where the file is gone. The reference stays.
  constexpr int kFlags = RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE;
  const char* name = static_cast<const link_map*>(object)->l_name;
  void* handle =
      space == LM_ID_BASE ? dlopen(name, kFlags) : dlmopen(space, name, kFlags);
  // glibc's handle is the object itself. Another one of that name says nothing of ours.
  if (handle != object) return false;
  Remember(reinterpret_cast<uintptr_t>(about.dli_fbase));
  return true;
}

}  // namespace rollcall
