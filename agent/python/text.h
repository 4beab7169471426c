// CPython's strings (PEP 393) as UTF-8. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rollcall {

struct PythonStringForm {
  size_t bytes_per_character = 1;  // 1, 2 or 4
  bool ascii = false;              // its text lies where an ASCII string's does
};

// From PyASCIIObject's state. nullopt: none that a name or path has, so no string.
std::optional<PythonStringForm> PythonStringFormOf(uint32_t state);

// Surrogates, numbers beyond Unicode and control characters become U+FFFD.
std::string Utf8OfPythonString(const std::string& bytes, size_t bytes_per_character);

}  // namespace rollcall
