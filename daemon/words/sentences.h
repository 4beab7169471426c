// SPDX-License-Identifier: Apache-2.0
// Writes a verdict as one sentence: ranks, call, communicator and length of the wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// "rank 3 (node-17, pid 4121) never entered AllReduce #8812 on communicator "dp";
// 63 ranks have waited 48 s".
std::string WriteSummary(const Verdict& verdict);

// "Send to rank 3 of communicator "dp"". A peer is a rank of the communicator.
std::string EndInWords(const CallArgs& call, const std::string& communicator);

// "rank 0 waits in AllReduce #3 on communicator "dp" for rank 1".
std::string EdgeInWords(const WaitEdge& edge);

// The change after which the histories agree again; "" if there is no simple one.
struct Alignment;
std::string DivergenceInWords(const Alignment& alignment);

}  // namespace rollcall
