// SPDX-License-Identifier: Apache-2.0
// Asks PyTorch's Flight Recorder of a process for its dump: as PyTorch documents it, by a byte into
// the pipe that the job has named.
#pragma once

#include <sys/types.h>

#include <string>

namespace rollcall {

// `root`: the process's root folder; `pipe`: the path of the pipe as the process sees it; `owner`:
// the process's user. The job chooses the path, and opening a device acts on it: this opens only a
// pipe, and only one of that user. Does not wait for a reader. False if the process got no request.
bool AskForDump(const std::string& root, const std::string& pipe, uid_t owner);

}  // namespace rollcall
