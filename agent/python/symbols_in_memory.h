// SPDX-License-Identifier: Apache-2.0
// Finds variables of a mapped file by the tables that the dynamic linker uses, in the memory of the
// process. For a file that cannot be read, because its file server does not answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/processes/proc_maps.h"
#include "agent/processes/process_memory.h"

namespace rollcall {

// Returns for each name how far behind `first.start` it is; 0 if not found. `first`: the mapping of
// the file's beginning. Reads a bounded number of bytes, whatever the tables contain.
std::vector<uint64_t> FindSymbolsInMemory(const ProcMap& first,
                                          const std::vector<std::string>& names,
                                          ProcessMemory* memory);

}  // namespace rollcall
