// SPDX-License-Identifier: Apache-2.0
#include "agent/python/symbols_in_memory.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

constexpr size_t kMostHeaders = 64;
constexpr size_t kMostDynamic = 512;
constexpr size_t kMostInChain = 1024;

// Returns the hash of .gnu.hash: Bernstein's, from 5381 on.
uint32_t HashOf(absl::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash;
}

// The tables of one file. Addresses are those of the process.
class DynamicTables {
 public:
  DynamicTables(const ProcMap& first, ProcessMemory* memory) : first_(first), memory_(memory) {
    is_complete_ = ReadHeaders() && symbols_ != 0 && strings_ != 0 && hashes_ != 0 && ReadHashes();
  }

  // Returns 0 if it is not there.
  uint64_t Find(const std::string& name) {
    const uint32_t hash = HashOf(name);
    uint32_t index = 0;
    if (!is_complete_ || !memory_->ReadValue(buckets_ + 4 * (hash % bucket_count_), &index)) {
      return 0;
    }
    if (index < first_symbol_) return 0;  // an empty bucket
    for (size_t i = 0; i < kMostInChain; ++i, ++index) {
      uint32_t other = 0;
      if (!memory_->ReadValue(chains_ + 4 * uint64_t{index - first_symbol_}, &other)) return 0;
      // The last bit marks the end of a chain.
      if ((other | 1) == (hash | 1)) {
        const uint64_t found = IfNamed(index, name);
        if (found != 0) return found;
      }
      if ((other & 1) != 0) return 0;
    }
    return 0;
  }

 private:
  bool ReadHeaders() {
    Elf64_Ehdr header;
    if (!memory_->ReadValue(first_.start, &header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
      return false;
    }
    std::optional<uint64_t> begin;
    uint64_t dynamic = 0;
    const size_t count = std::min<size_t>(header.e_phnum, kMostHeaders);
    for (size_t i = 0; i < count; ++i) {
      Elf64_Phdr segment;
      if (!memory_->ReadValue(first_.start + header.e_phoff + i * sizeof(segment), &segment)) {
        return false;
      }
      if (segment.p_type == PT_LOAD && segment.p_offset == 0 && !begin) begin = segment.p_vaddr;
      if (segment.p_type == PT_DYNAMIC) dynamic = segment.p_vaddr;
    }
    if (!begin.has_value() || dynamic == 0) return false;
    bias_ = first_.start - *begin;
    return ReadDynamic(bias_ + dynamic);
  }

  bool ReadDynamic(uint64_t address) {
    for (size_t i = 0; i < kMostDynamic; ++i, address += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      if (!memory_->ReadValue(address, &entry)) return false;
      if (entry.d_tag == DT_NULL) return true;
      if (entry.d_tag == DT_SYMTAB) symbols_ = InProcess(entry.d_un.d_ptr);
      if (entry.d_tag == DT_STRTAB) strings_ = InProcess(entry.d_un.d_ptr);
      if (entry.d_tag == DT_GNU_HASH) hashes_ = InProcess(entry.d_un.d_ptr);
    }
    return false;
  }

  bool ReadHashes() {
    uint32_t header[4];  // buckets, the first symbol, words of the filter, its shift
    if (!memory_->ReadValue(hashes_, &header) || header[0] == 0) return false;
    bucket_count_ = header[0];
    first_symbol_ = header[1];
    buckets_ = hashes_ + sizeof(header) + 8 * uint64_t{header[2]};
    chains_ = buckets_ + 4 * uint64_t{bucket_count_};
    return true;
  }

  // glibc replaces the addresses in the table by those of the process; musl does not.
  uint64_t InProcess(uint64_t address) const {
    return address < first_.start ? address + bias_ : address;
  }

  uint64_t IfNamed(uint32_t index, const std::string& name) {
    Elf64_Sym symbol;
    if (!memory_->ReadValue(symbols_ + index * sizeof(symbol), &symbol)) return 0;
    std::vector<char> read(name.size() + 1);
    if (!memory_->Read(strings_ + symbol.st_name, read.data(), read.size())) return 0;
    const bool is_it = std::memcmp(read.data(), name.c_str(), read.size()) == 0;
    return is_it && symbol.st_shndx != SHN_UNDEF ? bias_ + symbol.st_value : 0;
  }

  const ProcMap& first_;
  ProcessMemory* const memory_;
  bool is_complete_ = false;
  uint64_t bias_ = 0, symbols_ = 0, strings_ = 0, hashes_ = 0, buckets_ = 0, chains_ = 0;
  uint32_t bucket_count_ = 0, first_symbol_ = 0;
};

}  // namespace

std::vector<uint64_t> FindSymbolsInMemory(const ProcMap& first,
                                          const std::vector<std::string>& names,
                                          ProcessMemory* memory) {
  DynamicTables tables(first, memory);
  std::vector<uint64_t> found;
  for (const std::string& name : names) {
    const uint64_t address = tables.Find(name);
    found.push_back(address <= first.start ? 0 : address - first.start);
  }
  return found;
}

}  // namespace rollcall
