// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/elf_symbols.h"

#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <memory>

namespace rollcall {
namespace {

constexpr size_t kMaxSymbols = 4 << 20;

void SearchTable(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                 const std::vector<std::string>& names, std::vector<uint64_t>* addresses) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const size_t count = std::min<size_t>(data->d_size / header.sh_entsize, kMaxSymbols);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    if (symbol.st_value == 0 || symbol.st_shndx == SHN_UNDEF) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr) continue;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) (*addresses)[found - names.begin()] = symbol.st_value;
  }
}

}  // namespace

std::vector<uint64_t> FindElfSymbols(int fd, const std::vector<std::string>& names) {
  std::vector<uint64_t> addresses(names.size(), 0);
  elf_version(EV_CURRENT);
  // ELF_C_READ does not map the file: a file that is truncated during the read causes no SIGBUS.
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ, nullptr), &elf_end);
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF) return addresses;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) continue;
    SearchTable(elf.get(), section, header, names, &addresses);
    if (std::find(addresses.begin(), addresses.end(), 0) == addresses.end()) break;
  }
  return addresses;
}

}  // namespace rollcall
