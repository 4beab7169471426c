// SPDX-License-Identifier: Apache-2.0
// Reads what the loader reads of a file, without loading it: a static program cannot load
// libraries.
#pragma once

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/doctor/facts.h"

namespace rollcall::doctor {

// A file that is missing, unreadable or damaged gives `is_elf` false, or less. May block on a file
// server.
ElfFacts ReadElf(const std::string& path);

// The functions that a library offers to others, of those whose symbols begin like this. Empty for
// a file as above.
std::set<std::string> FunctionsIn(const std::string& path, absl::string_view prefix);

}  // namespace rollcall::doctor
