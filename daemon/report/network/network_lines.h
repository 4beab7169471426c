// SPDX-License-Identifier: Apache-2.0
// The way over the network transfers, in lines for people.
#pragma once

#include <string>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// "rank 3 waits for data from rank 2, rank 2 from rank 1, ...", what stands there, and how many
// channels lead there. Empty if the verdict has no such way.
std::vector<std::string> NetworkLines(const v1::Verdict& verdict);

}  // namespace rollcall
