// SPDX-License-Identifier: Apache-2.0
// Finds the user to whom /etc/subuid has given a user id for his containers. Pure.
//
// A user gets 65,536 of them, and may use each alone. Who gets more, as the kubelet does, gives
// each container a block of them.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rollcall {

// The first id of the block that this one belongs to; the id itself, if it is not subordinate.
// `subuid`: lines such as "alice:100000:65536".
uint32_t FirstOfItsBlock(absl::string_view subuid, uint32_t id);

}  // namespace rollcall
