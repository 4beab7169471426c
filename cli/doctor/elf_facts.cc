// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/elf_facts.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"

namespace rollcall::doctor {
namespace {

struct Sanitizer {
  const char* library;
  const char* name;
};

constexpr Sanitizer kSanitizers[] = {
    {"libasan.so", "address"}, {"libclang_rt.asan", "address"},   {"libhwasan.so", "hwaddress"},
    {"libtsan.so", "thread"},  {"libclang_rt.tsan", "thread"},    {"libubsan.so", "undefined"},
    {"liblsan.so", "leak"},    {"libclang_rt.ubsan", "undefined"}};

constexpr char kNcclCall[] = "ncclAllReduce";
constexpr char kMarkerCall[] = "cuStreamWriteValue64_v2";

std::string NameOfMachine(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    default:
      return "";
  }
}

void ReadInterpreter(int fd, Elf* elf, ElfFacts* facts) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_INTERP)
      continue;
    char text[256] = "";
    const size_t size = std::min<size_t>(header.p_filesz, sizeof(text) - 1);
    if (pread(fd, text, size, static_cast<off_t>(header.p_offset)) > 0) facts->interpreter = text;
  }
}

std::vector<std::string> Folders(const char* text, const std::string& path) {
  std::vector<std::string> folders;
  if (text == nullptr) return folders;
  std::error_code ignored;
  const std::string origin = std::filesystem::canonical(path, ignored).parent_path().string();
  for (const absl::string_view one : absl::StrSplit(text, ':', absl::SkipEmpty())) {
    folders.push_back(absl::StrReplaceAll(one, {{"$ORIGIN", origin}, {"${ORIGIN}", origin}}));
  }
  return folders;
}

void ReadNeeded(const char* name, ElfFacts* facts) {
  if (name == nullptr) return;
  facts->needed.emplace_back(name);
  for (const Sanitizer& one : kSanitizers) {
    if (facts->sanitizer.empty() && absl::StartsWith(name, one.library))
      facts->sanitizer = one.name;
  }
}

void ReadDynamic(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, const std::string& path,
                 ElfFacts* facts) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const auto text = [&](const GElf_Dyn& entry) {
    return elf_strptr(elf, header.sh_link, entry.d_un.d_val);
  };
  GElf_Dyn entry;
  for (int i = 0; gelf_getdyn(data, i, &entry) != nullptr && entry.d_tag != DT_NULL; ++i) {
    if (entry.d_tag == DT_NEEDED) ReadNeeded(text(entry), facts);
    if (entry.d_tag == DT_RPATH) facts->rpath = Folders(text(entry), path);
    if (entry.d_tag == DT_RUNPATH) facts->runpath = Folders(text(entry), path);
  }
  if (!facts->runpath.empty()) facts->rpath.clear();  // the loader ignores it then
}

// Calls `visit` with the name of each function that the section defines.
template <typename Visit>
void ForEachFunction(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, const Visit& visit) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr) return;
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name != nullptr) visit(name);
  }
}

// Calls `visit` with each section and its header.
template <typename Visit>
void ForEachSection(Elf* elf, const Visit& visit) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) != nullptr) visit(section, header);
  }
}

void ReadSections(Elf* elf, const std::string& path, ElfFacts* facts) {
  ForEachSection(elf, [&](Elf_Scn* section, const GElf_Shdr& header) {
    if (header.sh_type == SHT_DYNAMIC) ReadDynamic(elf, section, header, path, facts);
    if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) return;
    ForEachFunction(elf, section, header, [facts](const char* name) {
      facts->has_nccl = facts->has_nccl || strcmp(name, kNcclCall) == 0;
      facts->has_marker_calls = facts->has_marker_calls || strcmp(name, kMarkerCall) == 0;
    });
  });
}

// Calls `use` with the file, if it is in ELF.
template <typename Use>
void WithElf(const std::string& path, const Use& use) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() || elf_version(EV_CURRENT) == EV_NONE) return;
  // Not mapped: a file that is cut short meanwhile is an error then, and no SIGBUS.
  Elf* elf = elf_begin(fd.get(), ELF_C_READ, nullptr);
  if (elf == nullptr) return;
  if (elf_kind(elf) == ELF_K_ELF) use(fd.get(), elf);
  elf_end(elf);
}

}  // namespace

ElfFacts ReadElf(const std::string& path) {
  ElfFacts facts;
  WithElf(path, [&](int fd, Elf* elf) {
    GElf_Ehdr header;
    if (gelf_getehdr(elf, &header) == nullptr) return;
    facts.is_elf = true;
    facts.machine = NameOfMachine(header.e_machine);
    ReadInterpreter(fd, elf, &facts);
    ReadSections(elf, path, &facts);
  });
  return facts;
}

std::set<std::string> FunctionsIn(const std::string& path, absl::string_view prefix) {
  std::set<std::string> found;
  WithElf(path, [&](int, Elf* elf) {
    ForEachSection(elf, [&](Elf_Scn* section, const GElf_Shdr& header) {
      if (header.sh_type != SHT_DYNSYM) return;
      ForEachFunction(elf, section, header, [&](const char* name) {
        if (absl::StartsWith(name, prefix)) found.insert(name);
      });
    });
  });
  return found;
}

}  // namespace rollcall::doctor
