// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/dwfl_module.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/open_in_root.h"
#include "base/open_regular.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

// Replaces libdwfl's own search, which sends requests to debuginfod servers and can take minutes.
// This search opens only local files.
int FindDebugFile(Dwfl_Module*, void** user_data, const char*, Dwarf_Addr, const char*, const char*,
                  GElf_Word, char** path) {
  const auto* file = static_cast<const ElfFile*>(*user_data);
  const std::string& id = file->build_id();
  if (id.size() < 4) return -1;
  // First the root of the process's container, then the agent's root.
  for (const std::string& root : {file->root(), std::string()}) {
    const std::string name =
        absl::StrCat("/usr/lib/debug/.build-id/", id.substr(0, 2), "/", id.substr(2), ".debug");
    // In the agent's own root, root alone writes there, and some distributions have links.
    const UniqueFd there = root.empty() ? UniqueFd(open(name.c_str(), O_PATH | O_CLOEXEC))
                                        : OpenInRoot(root, name, O_PATH);
    UniqueFd fd = ReopenRegular(there, O_RDONLY);
    if (!fd.valid()) continue;
    *path = strdup(absl::StrCat(root, name).c_str());
    return fd.Release();
  }
  return -1;
}

// Decompressing the debug information of the C library takes 40 ms, and its lines do not explain
// hangs. The symbol table has the names of its functions.
bool IsCLibrary(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const char* known : {"libc.so.6", "libc-2.", "libpthread", "ld-linux"}) {
    if (absl::StartsWith(name, known)) return true;
  }
  return false;
}

int FindNoElf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

const Dwfl_Callbacks kCallbacks = {FindNoElf, FindDebugFile, dwfl_offline_section_address, nullptr};

const char* LinkageName(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  const char* name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
  return name != nullptr ? name : dwarf_diename(die);
}

// Returns the line of the caller at which the compiler expanded `inlined`.
SymbolName CallSite(Dwarf_Die* unit, Dwarf_Die* inlined) {
  SymbolName site;
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  Dwarf_Files* files = nullptr;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0) {
    site.line = static_cast<int>(line);
  }
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) == 0 &&
      dwarf_getsrcfiles(unit, &files, nullptr) == 0) {
    const char* name = dwarf_filesrc(files, file, nullptr, nullptr);
    if (name != nullptr) site.source_file = name;
  }
  return site;
}

}  // namespace

DwflModule::DwflModule(std::shared_ptr<ElfFile> file) : file_(std::move(file)) {
  session_ = dwfl_begin(&kCallbacks);
  if (session_ == nullptr) return;
  // On success, libdwfl takes over and closes this descriptor.
  UniqueFd fd(fcntl(file_->fd(), F_DUPFD_CLOEXEC, 0));
  const char* name = file_->name().c_str();
  module_ = fd.valid() ? dwfl_report_offline(session_, name, name, fd.get()) : nullptr;
  dwfl_report_end(session_, nullptr, nullptr);
  if (module_ == nullptr) return;
  fd.Release();
  void** user_data = nullptr;
  dwfl_module_info(module_, &user_data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (user_data != nullptr) *user_data = file_.get();
  dwfl_module_getelf(module_, &bias_);
}

DwflModule::~DwflModule() {
  if (session_ != nullptr) dwfl_end(session_);
}

bool DwflModule::MayUseDwarf() {
  if (!may_use_dwarf_.has_value()) {
    Dwarf_Addr bias = 0;
    Dwarf* const dwarf = dwfl_module_getdwarf(module_, &bias);
    const char* debug_file = nullptr;
    dwfl_module_info(module_, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &debug_file);
    may_use_dwarf_ = dwarf != nullptr && MayFollowAlternative(dwarf, debug_file, *file_);
  }
  return *may_use_dwarf_;
}

Dwarf_Die* DwflModule::FindUnit(Dwarf_Addr address, Dwarf_Addr* bias) {
  Dwarf_Die* const unit = dwfl_module_addrdie(module_, address, bias);
  if (unit != nullptr) return unit;
  // Not all compilers write the table that libdwfl searches (.debug_aranges).
  if (!units_.has_value()) units_.emplace(module_);
  return units_->Find(address, bias);
}

// Returns one entry for each call that the compiler inlined at `address`, innermost first, then one
// for the function itself. The line of each call site belongs to the next outer entry.
std::vector<SymbolName> DwflModule::ResolveInlined(Dwarf_Addr address) {
  std::vector<SymbolName> names(1);
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = FindUnit(address, &bias);
  Dwarf_Line* line = unit == nullptr ? nullptr : dwarf_getsrc_die(unit, address - bias);
  if (line != nullptr) {
    dwarf_lineno(line, &names[0].line);
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    if (file != nullptr) names[0].source_file = file;
  }
  Dwarf_Die split;
  if (unit != nullptr && FindSplitUnit(unit, *file_, &split)) unit = &split;
  Dwarf_Die* scopes = nullptr;
  const int count = unit == nullptr ? 0 : dwarf_getscopes(unit, address - bias, &scopes);
  for (int i = 0; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    const char* name = LinkageName(&scopes[i]);
    if (name != nullptr) names.back().function = Demangle(name);
    if (tag == DW_TAG_subprogram) break;
    names.push_back(CallSite(unit, &scopes[i]));
  }
  std::free(scopes);
  return names;
}

std::vector<SymbolName> DwflModule::Resolve(uint64_t address) {
  if (module_ == nullptr) return {SymbolName{}};
  std::vector<SymbolName> names(1);
  if (!IsCLibrary(file_->name()) && MayUseDwarf()) names = ResolveInlined(address + bias_);
  // The symbol table has the name of the function even without DWARF.
  const char* symbol = dwfl_module_addrname(module_, address + bias_);
  if (symbol != nullptr) names.back().function = Demangle(symbol);
  return names;
}

Dwarf_CFI* DwflModule::DebugFrameTable(uint64_t address, Dwarf_Addr* in_table) {
  Dwarf_Addr bias = 0;
  Dwarf_CFI* cfi = module_ == nullptr ? nullptr : dwfl_module_dwarf_cfi(module_, &bias);
  *in_table = address + bias_ - bias;
  return cfi;
}

Dwarf_CFI* DwflModule::ExceptionTable(uint64_t address, Dwarf_Addr* in_table) {
  Dwarf_Addr bias = 0;
  Dwarf_CFI* cfi = module_ == nullptr ? nullptr : dwfl_module_eh_cfi(module_, &bias);
  *in_table = address + bias_ - bias;
  return cfi;
}

}  // namespace rollcall
