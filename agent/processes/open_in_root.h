// SPDX-License-Identifier: Apache-2.0
// Opens files of a process in another mount namespace, by /proc/PID/root.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace rollcall {

// Opens root + path as a process sees it whose root is the folder `root`: an absolute link and ".."
// stay below that folder. With a plain open() an absolute link leads into the agent's own root,
// where the agent may read what the process may not. `path` begins with '/'; `flags` are open()'s,
// without O_CREAT. O_CLOEXEC is always set. A link in the last place is followed unless `flags` has
// O_NOFOLLOW.
//
// Where the kernel cannot do so (before 5.6, or forbidden to this process), OpenWithoutLinks does.
// On an error the result is not valid, and errno has the reason.
UniqueFd OpenInRoot(const std::string& root, const std::string& path, int flags);

// The same, but refuses every link and every "..".
UniqueFd OpenWithoutLinks(const std::string& root, const std::string& path, int flags);

}  // namespace rollcall
