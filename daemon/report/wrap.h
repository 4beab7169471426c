// SPDX-License-Identifier: Apache-2.0
// Breaks text into lines that fit a ticket.
#pragma once

#include <cstddef>
#include <string>

namespace rollcall {

inline constexpr size_t kTextColumns = 100;

// `text` in lines of at most kTextColumns bytes, the first one after `first`, the
// others after `rest`, each ended by a newline. Breaks at blanks where it can; a
// word that is longer than a line is cut. Control characters become blanks.
std::string Wrap(const std::string& first, const std::string& rest, const std::string& text);

}  // namespace rollcall
