// SPDX-License-Identifier: Apache-2.0
// Splits a tick into messages that stay well below gRPC's message limit. A whole tick of a large
// host exceeds that limit, and so may a single process: its segment can hold 1,024 communicators.
#pragma once

#include <cstddef>
#include <vector>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// Whether SplitTick() would return one tick.
bool IsOnePiece(const v1::Tick& tick, size_t most_bytes);

// Returns at least one tick, each of about `most_bytes` at most, or with a single communicator. All
// have the same time; only the last has `whole` and `dropped_ticks`. A process in several pieces
// has its identity, evidence and sites in the first of them.
std::vector<v1::Tick> SplitTick(v1::Tick tick, size_t most_bytes);

}  // namespace rollcall
