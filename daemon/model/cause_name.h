// SPDX-License-Identifier: Apache-2.0
// The causes as people type them, in filters and silences. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace rollcall {

// All, as incident.json spells them.
const std::vector<std::string>& CauseNames();

// kInvalidArgument: there is no such cause; the message lists those that there are.
absl::Status CheckCauseName(const std::string& name);

}  // namespace rollcall
