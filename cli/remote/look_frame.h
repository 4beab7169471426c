// SPDX-License-Identifier: Apache-2.0
// How a look at a host travels over the stdout of a program on that host: a line with its length,
// and its bytes. Both sides are of one version (remote_script.h), so the bytes have none. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/remote/byte_budget.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

// The error of a look that is too large.
inline constexpr char kTooLargeLook[] = "what it sent is too large";

// "rollcall-look TOKEN " before the length.
std::string LookHead(absl::string_view token);

// Whether this may be a token: it comes from the command line.
bool IsLookToken(absl::string_view token);

// Frames a look. Leaves out the stacks of one that is too large, and notes that in the look.
std::string FramedLook(absl::string_view token, v1::HostLook look);

// What a stranger sent as a look: parsed, without control characters in its texts, and within the
// limits of look_limits.h. Takes from `budget` what the look takes in memory.
absl::StatusOr<v1::HostLook> ParseLook(absl::string_view bytes, ByteBudget* budget);

}  // namespace rollcall
