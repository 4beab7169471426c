// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace rollcall {

// What follows the last slash; the whole path if it has none.
inline absl::string_view BaseName(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace rollcall
