// SPDX-License-Identifier: Apache-2.0
// Converts an offset in a Python function to a source line, by the line table of its code object.
//
// Pure. The table is copied from another process, so every read is bounded. The forms of a table
// are those of CPython's Objects/lnotab_notes.txt (3.8, 3.9), PEP 626 (3.10) and
// InternalDocs/code_objects.md (3.11 on).
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/python/python_layout.h"

namespace rollcall {

// `offset`: bytes from the first instruction; below 0 if the function has not begun. Returns 0 if
// the table has no line for the offset.
int PythonLine(PythonLines form, const uint8_t* table, size_t size, int first_line, int64_t offset);

}  // namespace rollcall
