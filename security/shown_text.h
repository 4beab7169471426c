// SPDX-License-Identifier: Apache-2.0
// A text as a terminal shows it, for a search in it. A program may colour each part of
// "password=hunter2", or use blanks that are not ASCII. A reader sees no difference, but a pattern
// would not match.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// Leaves out escape sequences of terminals (ECMA-48), other control characters than white space,
// and characters without width. A backspace takes back the character before it. Each blank of
// Unicode, and each move of the cursor, becomes a space, and a byte that continues no character of
// UTF-8 becomes '?'. Other bytes that are not UTF-8 stay. Takes time linear in the length of the
// text, and makes no text longer.
std::string ShownText(absl::string_view text);

}  // namespace rollcall
