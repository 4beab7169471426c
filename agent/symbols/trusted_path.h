// SPDX-License-Identifier: Apache-2.0
// Whether only trusted users can decide what a path leads to.
#pragma once

#include <string>

namespace rollcall {

// Trusted users are root and the agent's own user. True if each folder of `path`, and the regular
// file at its end if there is one, belong to a trusted user, and no other user can replace or add
// them. So open() of the path meets no pipe or device of another user. `path` is absolute and may
// end in names that do not exist. A path with a symbolic link is not trusted.
bool IsTrustedPath(const std::string& path);

}  // namespace rollcall
