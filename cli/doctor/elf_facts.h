// SPDX-License-Identifier: Apache-2.0
// Reads what the loader reads of a file, without loading it: a static program cannot load
// libraries.
#pragma once

#include <string>

#include "cli/doctor/facts.h"

namespace rollcall::doctor {

// A file that is missing, unreadable or damaged gives `is_elf` false, or less. May block on a file
// server.
ElfFacts ReadElf(const std::string& path);

}  // namespace rollcall::doctor
