// SPDX-License-Identifier: Apache-2.0
// Which functions of gloo the PyTorch of a program has, of those that the library wraps.
#pragma once

#include <set>
#include <string>

#include "cli/doctor/probes.h"

namespace rollcall::doctor {

// Looks in Python's folders, in the program's own path and in LD_LIBRARY_PATH. May block on a file
// server.
GlooFacts FindGloo(const ProgramFacts& program, const Environment& environment);

// Fills in the functions, of a library that defines these symbols.
void CompareWithTable(const std::set<std::string>& defined, GlooFacts* facts);

}  // namespace rollcall::doctor
