// SPDX-License-Identifier: Apache-2.0
// Changes of the text of a token file that keep everything else in it byte for byte: comments,
// order and layout. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "security/token_list.h"

namespace rollcall {

// Returns `text` with the entry at its end. Fails if `text` is not a token file, has an entry of
// that name, or has a layout to which a line cannot be added, such as "tokens: [{...}]".
absl::StatusOr<std::string> AppendToken(absl::string_view text, const TokenEntry& entry);

// Returns `text` without the lines of the entry of that name. kNotFound: it has no such entry.
absl::StatusOr<std::string> RemoveToken(absl::string_view text, absl::string_view name);

}  // namespace rollcall
