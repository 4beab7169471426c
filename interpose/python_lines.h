// SPDX-License-Identifier: Apache-2.0
// From the place in a Python function to its source line, by the tables of its code object.
//
// Pure: a table is bytes that came from another process, so every read is checked. The forms are
// those of CPython's Objects/lnotab_notes.txt (3.8, 3.9), PEP 626 (3.10) and
// InternalDocs/code_objects.md (3.11 on).
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/python_layout.h"

namespace rollcall {

// `offset`: bytes from the first instruction; below 0: not begun. 0: no line is known for it.
int PythonLine(PythonLines form, const uint8_t* table, size_t size, int first_line, int64_t offset);

}  // namespace rollcall
