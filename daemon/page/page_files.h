// SPDX-License-Identifier: Apache-2.0
// The page's gzip-compressed files, as built into the program.
#pragma once

#include <cstddef>

namespace rollcall {

struct PageFile {
  const char* path;  // "/app.js"
  const char* type;
  const unsigned char* bytes;
  size_t size;
};

// Ends with a path of nullptr. Empty if the program was built without the page.
extern const PageFile kPageFiles[];

}  // namespace rollcall
