// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/symbol_name.h"

#include <cxxabi.h>

#include <cstdlib>

namespace rollcall {
namespace {

constexpr size_t kMaxMangled = 4096;
constexpr size_t kMaxShown = 1024;

}  // namespace

std::string Demangle(const std::string& symbol) {
  const std::string name = symbol.substr(0, symbol.find('@'));  // without "@@GLIBC_2.34"
  if (name.compare(0, 2, "_Z") != 0 || name.size() > kMaxMangled) return name.substr(0, kMaxShown);
  int status = 0;
  char* demangled = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string text = status == 0 ? demangled : name;
  std::free(demangled);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

}  // namespace rollcall
