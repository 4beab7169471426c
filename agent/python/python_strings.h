// SPDX-License-Identifier: Apache-2.0
// Converts CPython's strings (PEP 393) to UTF-8. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace rollcall {

// Surrogates, numbers beyond Unicode and control characters become U+FFFD.
std::string PythonStringToUtf8(const std::string& bytes, size_t bytes_per_character);

}  // namespace rollcall
