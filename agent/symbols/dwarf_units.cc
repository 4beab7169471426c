// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/dwarf_units.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/symbols/trusted_path.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kMaxRanges = 1 << 20;

bool IsInOwnFileSystem(const ElfFile& file) {
  if (file.root().empty()) return true;
  struct stat root;
  struct stat own;
  return stat(absl::StrCat(file.root(), "/").c_str(), &root) == 0 && stat("/", &own) == 0 &&
         root.st_dev == own.st_dev && root.st_ino == own.st_ino;
}

// Returns the folder of the open file, which libdw searches first; empty if unknown.
std::string FolderOf(const ElfFile& file) {
  const std::string name = ReadLink(absl::StrCat("/proc/self/fd/", file.fd()));
  return name.substr(0, name.rfind('/') + 1);
}

std::string Attribute(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  const char* text = dwarf_formstring(dwarf_attr(die, name, &attribute));
  return text == nullptr ? "" : text;
}

std::string Join(const std::string& folder, const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  return absl::StrCat(folder, "/", path);
}

// Whether libdw may open the names that the unit gives for its .dwo file: beside the file, and in
// the folder of the compiler. Beside the file libdw also looks for FILE.dwp.
bool MayFollow(Dwarf_Die* unit, const ElfFile& file) {
  const std::string folder = FolderOf(file);
  std::string name = Attribute(unit, DW_AT_dwo_name);
  if (name.empty()) name = Attribute(unit, DW_AT_GNU_dwo_name);
  if (folder.empty() || name.empty() || !IsInOwnFileSystem(file)) return false;
  const std::string compiled_in = Join(folder, Attribute(unit, DW_AT_comp_dir));
  return IsTrustedPath(Join(folder, name)) && IsTrustedPath(Join(compiled_in, name)) &&
         IsTrustedPath(absl::StrCat(Join(folder, file.name()), ".dwp"));
}

}  // namespace

UnitIndex::UnitIndex(Dwfl_Module* module) {
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = nullptr;
  while ((unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    ptrdiff_t next = 0;
    while (ranges_.size() < kMaxRanges &&
           (next = dwarf_ranges(unit, next, &base, &begin, &end)) > 0) {
      if (begin < end) ranges_.push_back({begin + bias, end + bias, bias, unit});
    }
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

Dwarf_Die* UnitIndex::Find(Dwarf_Addr address, Dwarf_Addr* bias) {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](Dwarf_Addr value, const Range& range) { return value < range.begin; });
  if (after == ranges_.begin()) return nullptr;
  const Range& range = *(after - 1);
  if (address >= range.end) return nullptr;
  *bias = range.bias;
  return range.unit;
}

bool FindSplitUnit(Dwarf_Die* unit, const ElfFile& file, Dwarf_Die* split) {
  uint8_t type = 0;
  // Without a place for the split unit, libdw opens no file.
  if (dwarf_cu_info(unit->cu, nullptr, &type, nullptr, nullptr, nullptr, nullptr, nullptr) != 0 ||
      type != DW_UT_skeleton || !MayFollow(unit, file)) {
    return false;
  }
  return dwarf_cu_info(unit->cu, nullptr, nullptr, nullptr, split, nullptr, nullptr, nullptr) ==
             0 &&
         dwarf_tag(split) == DW_TAG_compile_unit;
}

bool MayFollowAlternative(Dwarf* dwarf, const char* debug_file, const ElfFile& file) {
  const char* name = nullptr;
  const void* id = nullptr;
  if (dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) == 0) return true;
  if (debug_file != nullptr) return IsTrustedPath(debug_file);
  const std::string folder = FolderOf(file);
  return !folder.empty() && IsInOwnFileSystem(file) && IsTrustedPath(Join(folder, file.name()));
}

}  // namespace rollcall
