// SPDX-License-Identifier: Apache-2.0
// Whether the name of a flag or a variable suggests that its value is a secret.
#pragma once

#include "absl/strings/string_view.h"

namespace rollcall {

// "db-password", "HF_TOKEN", "apiKey", "--pass"; not "max-tokens", "pad_token", "tls-key-file".
bool SuggestsSecret(absl::string_view name);

}  // namespace rollcall
