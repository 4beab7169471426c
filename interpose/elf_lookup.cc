// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/elf_lookup.h"

#include <link.h>
#include <string.h>

namespace rollcall {
namespace {

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hash = nullptr;      // DT_HASH
  const uint32_t* gnu_hash = nullptr;  // DT_GNU_HASH
};

// glibc has relocated the addresses in a dynamic section; musl has not.
template <typename Pointer>
void Set(ElfW(Addr) base, ElfW(Addr) value, Pointer* out) {
  *out = reinterpret_cast<Pointer>(value < base ? base + value : value);
}

Tables FindTables(const dl_phdr_info& object) {
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

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

uint32_t SystemVHash(const char* name) {
  uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const uint32_t high = hash & 0xf0000000;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

const ElfW(Sym) * Defined(const Tables& tables, uint32_t index, const char* name) {
  const ElfW(Sym)* symbol = &tables.symbols[index];
  const bool is_function =
      (symbol->st_info & 0xf) == STT_FUNC || (symbol->st_info & 0xf) == STT_GNU_IFUNC;
  const bool found = symbol->st_shndx != SHN_UNDEF && is_function &&
                     strcmp(tables.names + symbol->st_name, name) == 0;
  return found ? symbol : nullptr;
}

// DT_GNU_HASH: number of buckets, first hashed symbol, words of the filter, its shift; then the
// filter, the buckets, and chains of hashes. The last hash of a chain is odd.
const ElfW(Sym) * FindByGnuHash(const Tables& tables, const char* name) {
  const uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1];
  const uint32_t words = tables.gnu_hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* bucket = tables.gnu_hash + 4 + words;
  const uint32_t* chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  const uint32_t hash = GnuHash(name);
  uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const uint32_t seen = chain[index - first];
    if ((seen | 1) == (hash | 1)) {
      const ElfW(Sym)* symbol = Defined(tables, index, name);
      if (symbol != nullptr) return symbol;
    }
    if ((seen & 1) != 0) return nullptr;
  }
}

// DT_HASH: number of buckets and of symbols; then the buckets, and for each symbol the next one.
const ElfW(Sym) * FindBySystemVHash(const Tables& tables, const char* name) {
  const uint32_t buckets = tables.hash[0], symbols = tables.hash[1];
  const uint32_t* chain = tables.hash + 2 + buckets;
  if (buckets == 0) return nullptr;
  uint32_t index = tables.hash[2 + SystemVHash(name) % buckets];
  for (; index != 0 && index < symbols; index = chain[index]) {
    const ElfW(Sym)* symbol = Defined(tables, index, name);
    if (symbol != nullptr) return symbol;
  }
  return nullptr;
}

const ElfW(Sym) * FindSymbol(const Tables& tables, const char* name) {
  if (tables.symbols == nullptr || tables.names == nullptr) return nullptr;
  if (tables.gnu_hash != nullptr) return FindByGnuHash(tables, name);
  return tables.hash == nullptr ? nullptr : FindBySystemVHash(tables, name);
}

bool IsThisLibrary(const dl_phdr_info& object) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&FindFunctionInElf);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object.dlpi_phdr[i];
    const ElfW(Addr) begin = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && here >= begin && here < begin + part.p_memsz) return true;
  }
  return false;
}

struct Search {
  const char* name;
  uint32_t skip;  // objects to skip
  ElfObject* object;
  bool found;
};

// The loader calls this function and holds its lock meanwhile, so it only reads and copies.
int SearchObject(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  // The vDSO's addresses are not relocated.
  if (info->dlpi_addr == 0 || IsThisLibrary(*info)) return 0;
  const ElfW(Sym)* symbol = FindSymbol(FindTables(*info), search->name);
  if (symbol == nullptr) return 0;
  if (search->skip > 0) {
    --search->skip;
    return 0;
  }
  search->object->address = reinterpret_cast<void*>(info->dlpi_addr + symbol->st_value);
  const char* name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const size_t length = strlen(name);
  const bool fits = length < sizeof(search->object->name);
  memcpy(search->object->name, name, fits ? length + 1 : 0);
  if (!fits) search->object->name[0] = '\0';
  search->found = true;
  return 1;
}

}  // namespace

bool FindDefiningObject(const char* symbol, uint32_t skip, ElfObject* out) {
  Search search = {symbol, skip, out, false};
  dl_iterate_phdr(&SearchObject, &search);
  return search.found;
}

void* FindFunctionInElf(const char* name) {
  ElfObject object;
  return FindDefiningObject(name, 0, &object) ? object.address : nullptr;
}

}  // namespace rollcall
