// SPDX-License-Identifier: Apache-2.0
// A folder that no other user can have made. In /dev/shm and /tmp everybody can guess a name and
// make the folder first; what a program then writes there, by path, its owner can lead elsewhere.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

// Makes the folder with `mode` if it is missing, and opens it (O_RDONLY, so that its files can be
// listed). Errors: kPermissionDenied (another user owns it, or it is a link), kUnavailable.
absl::StatusOr<UniqueFd> OpenOwnFolder(const std::string& path, mode_t mode);

}  // namespace rollcall
