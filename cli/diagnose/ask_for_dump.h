// SPDX-License-Identifier: Apache-2.0
// Asks PyTorch's Flight Recorder of a process for its dump: as PyTorch documents it, by a byte into
// the pipe that the job has named.
#pragma once

#include <sys/types.h>

#include <string>

namespace rollcall {

// `root`: the process's root folder; `pipe`: the path of the pipe as the process sees it; `owner`:
// the process's user. The job chooses the path: what is no pipe, or belongs to another user, is
// never opened, because opening a device acts on it. Does not wait for a reader. False: nobody has
// been asked.
bool AskForDump(const std::string& root, const std::string& pipe, uid_t owner);

}  // namespace rollcall
