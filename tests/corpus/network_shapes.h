// SPDX-License-Identifier: Apache-2.0
// The connections and kernels of collectives: rings, chains, double binary trees, shifts of sends
// and receives, over hosts with one rank or several.
#pragma once

#include <cstdint>
#include <vector>

#include "network_transfer.h"

namespace rollcall::corpus {

enum class Algorithm : uint8_t { kRing, kChain, kTree, kShift };

struct Layout {
  Algorithm algorithm = Algorithm::kRing;
  int hosts = 2, per_host = 1, channels = 1;
  uint64_t loops = 1;  // of a ring; elsewhere steps
  int64_t link_ns = 100'000;

  int ranks() const { return hosts * per_host; }
};

struct Plan {
  std::vector<Connection> connections;
  std::vector<KernelPart> parts;
};

Plan MakePlan(const Layout& layout);

}  // namespace rollcall::corpus
