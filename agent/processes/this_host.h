// SPDX-License-Identifier: Apache-2.0
// The name of this host, and the id of its current boot.
#pragma once

#include <string>

namespace rollcall {

std::string HostName();

// Equal in all containers of a host, different on two hosts. Empty if the kernel does not show it.
const std::string& OwnBootId();

}  // namespace rollcall
