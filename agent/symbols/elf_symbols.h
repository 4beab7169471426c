// SPDX-License-Identifier: Apache-2.0
// Addresses of named symbols in an ELF file, from its symbol tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rollcall {

// For each of `names` its address as the file numbers it; 0 where the file has it not. Reads the
// dynamic table and, where it is there, the full one. A damaged file gives zeros.
std::vector<uint64_t> FindElfSymbols(int fd, const std::vector<std::string>& names);

}  // namespace rollcall
