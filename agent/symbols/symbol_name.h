// SPDX-License-Identifier: Apache-2.0
// The name of an address: its function, and its source line if the debug information has one.
#pragma once

#include <string>

namespace rollcall {

struct SymbolName {
  std::string function;  // demangled; empty if unknown
  std::string source_file;
  int line = 0;
};

// Returns "foo(int)" for "_Z3fooi", and other names unchanged, without "@VERSION". Truncates very
// long names.
std::string Demangle(const std::string& symbol);

}  // namespace rollcall
