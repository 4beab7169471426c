// SPDX-License-Identifier: Apache-2.0
// The page, as it was built into the program: gzip-compressed files.
#pragma once

#include <cstddef>

namespace rollcall {

struct PageFile {
  const char* path;  // "/app.js"
  const char* type;
  const unsigned char* bytes;
  size_t size;
};

// Of no files where the page was not built; ends at a path of nullptr.
extern const PageFile kPageFiles[];

}  // namespace rollcall
