// SPDX-License-Identifier: Apache-2.0
// Makes a sentence fit: shortens its lists of ranks, and then leaves out what comes last. A person
// reads no half of a name, of a call or of a list.
#pragma once

#include <cstddef>
#include <string>

namespace rollcall {

// "ranks 0,2,4,6 and 10 more" becomes "ranks 0,2 and 12 more": names at most this many ranges of
// each list.
std::string NameFewerRanks(const std::string& text, size_t ranges);

// The text with lists of ranks as long as fit into `most` bytes. If it is too long without them, it
// ends behind a clause with "...", where one ends.
std::string FitSentence(const std::string& text, size_t most);

}  // namespace rollcall
