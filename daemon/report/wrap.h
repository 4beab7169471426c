// SPDX-License-Identifier: Apache-2.0
// Breaks text into lines that fit a ticket.
#pragma once

#include <cstddef>
#include <string>

namespace rollcall {

inline constexpr size_t kTextColumns = 100;

// Breaks `text` into lines of at most kTextColumns bytes, each ended by a newline. The first line
// begins with `first`, the others with `rest`. Breaks at blanks where possible, and cuts a word
// that is longer than a line. Replaces control characters with blanks.
std::string Wrap(const std::string& first, const std::string& rest, const std::string& text);

}  // namespace rollcall
