// SPDX-License-Identifier: Apache-2.0
// Communicators of two ranks that torch creates at their first message outside a batch. Their names
// end with the two ranks: "default_pg:p2p:0:1".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rollcall {

struct PairName {
  std::string of;               // the process group, "default_pg"
  int32_t ranks[2] = {-1, -1};  // by rank in the pair: ranks of that group
};

std::optional<PairName> FindPairName(const std::string& name);

}  // namespace rollcall
