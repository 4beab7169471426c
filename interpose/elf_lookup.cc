#include "interpose/old_glibc.h"

#include "interpose/elf_lookup.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

namespace rollcall {
namespace {

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hash = nullptr;      // DT_HASH
  const uint32_t* gnu_hash = nullptr;  // DT_GNU_HASH
};

// glibc has relocated the addresses in a dynamic section already, musl has not.
template <typename Pointer>
void Set(ElfW(Addr) base, ElfW(Addr) value, Pointer* out) {
  *out = reinterpret_cast<Pointer>(value < base ? base + value : value);
}

Tables TablesOf(const dl_phdr_info& object) {
  Tables tables;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) value = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) Set(object.dlpi_addr, value, &tables.symbols);
      if (entry->d_tag == DT_STRTAB) Set(object.dlpi_addr, value, &tables.names);
      if (entry->d_tag == DT_HASH) Set(object.dlpi_addr, value, &tables.hash);
      if (entry->d_tag == DT_GNU_HASH) Set(object.dlpi_addr, value, &tables.gnu_hash);
    }
  }
  return tables;
}

// The table of symbols has no length of its own: its hash tables tell it.
uint32_t CountOf(const Tables& tables) {
  if (tables.hash != nullptr) return tables.hash[1];
  if (tables.gnu_hash == nullptr) return 0;
  const uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1];
  const uint32_t words = tables.gnu_hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* bucket = tables.gnu_hash + 4 + words;
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

bool IsThisLibrary(const dl_phdr_info& object) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&FindFunctionInElf);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    const ElfW(Addr) begin = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && here >= begin && here < begin + part.p_memsz) return true;
  }
  return false;
}

struct Search {
  const char* name;
  void* found;
};

int SearchObject(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  // The kernel's own object has no addresses to be relocated by.
  if (object->dlpi_addr == 0 || IsThisLibrary(*object)) return 0;
  const Tables tables = TablesOf(*object);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  const uint32_t count = CountOf(tables);
  for (uint32_t i = 0; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    if (symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xf) != STT_FUNC) continue;
    if (strcmp(tables.names + symbol.st_name, search->name) != 0) continue;
    search->found = reinterpret_cast<void*>(object->dlpi_addr + symbol.st_value);
    return 1;
  }
  return 0;
}

}  // namespace

void* FindFunctionInElf(const char* name) {
  Search search = {name, nullptr};
  dl_iterate_phdr(&SearchObject, &search);
  return search.found;
}

}  // namespace rollcall
