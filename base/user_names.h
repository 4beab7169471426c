// SPDX-License-Identifier: Apache-2.0
// The names of this host's users.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// "alice"; empty if no user of this host has the number. Thread-safe. The first call for a number
// may wait for a directory service; later ones have its answer.
std::string UserName(uint32_t user);

// "alice", or "uid 1001" without a name.
std::string UserInWords(uint32_t user);

}  // namespace rollcall
