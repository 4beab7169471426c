// SPDX-License-Identifier: Apache-2.0
// Which host this is, and which start of its kernel.
#pragma once

#include <string>

namespace rollcall {

std::string HostName();

// All containers of a host share it, no two hosts do. "": the kernel does not say.
const std::string& OwnBootId();

}  // namespace rollcall
