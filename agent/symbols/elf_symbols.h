// SPDX-License-Identifier: Apache-2.0
// Addresses of named symbols in an ELF file, from its symbol tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rollcall {

// Returns the address of each of `names`, in the file's addresses; 0 if not in the file. Reads the
// dynamic symbol table and, if present, the full one. For a damaged file, all are 0.
std::vector<uint64_t> FindElfSymbols(int fd, const std::vector<std::string>& names);

}  // namespace rollcall
