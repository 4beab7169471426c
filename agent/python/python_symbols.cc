// SPDX-License-Identifier: Apache-2.0
#include "agent/python/python_symbols.h"

#include <utility>

#include "agent/symbols/elf_symbols.h"

namespace rollcall {
namespace {

constexpr size_t kMaxKnownFiles = 256;

}  // namespace

FoundSymbols SymbolsInFiles::Find(pid_t pid, const ProcMap& first,
                                  const std::vector<std::string>& names, ProcessMemory*) {
  const auto file = files_.Find(pid, first);
  if (!file.ok()) return {std::vector<uint64_t>(names.size())};
  const std::string key = (*file)->build_id().empty() ? first.path : (*file)->build_id();
  if (known_.size() >= kMaxKnownFiles) known_.clear();
  const auto [known, fresh] = known_.try_emplace(key);
  if (fresh) {
    SetFileInUse((*file)->id());
    known->second = FindElfSymbols((*file)->fd(), names);
  }
  std::vector<uint64_t> found = known->second;
  const uint64_t begin = (*file)->AddressOfOffset(0).value_or(0);
  for (uint64_t& symbol : found) symbol -= symbol == 0 ? 0 : begin;
  return {std::move(found)};
}

}  // namespace rollcall
