// SPDX-License-Identifier: Apache-2.0
// The name of an address: its function, and its source line where debug information has one.
#pragma once

#include <string>

namespace rollcall {

struct SymbolName {
  std::string function;  // demangled; empty if unknown
  std::string source_file;
  int line = 0;
};

// "foo(int)" for "_Z3fooi"; other names as they are, without "@VERSION". Very long ones are cut.
std::string Demangle(const std::string& symbol);

}  // namespace rollcall
