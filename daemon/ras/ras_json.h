// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS reports of a job as JSON (NCCL 2.28.7 and later): the calls that each rank of
// each communicator has launched. Pure. The text is a stranger's, and may be cut: whole
// communicators before the cut are read.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/ras/ras_output.h"

namespace rollcall {

bool IsRasJson(absl::string_view text);

// Reads as ReadRasOutput() does: one finding for each operation that ranks of a communicator have
// launched in different numbers, with all its ranks named; and for the ranks of which RAS has no
// data.
std::vector<RasFinding> ReadRasJson(absl::string_view text);

// The ranks of each communicator, also where all have launched the same; at most kMostRanksRead in
// all.
inline constexpr size_t kMostRanksRead = 1 << 17;
std::vector<std::vector<RasRank>> ReadRasMembers(absl::string_view text);

}  // namespace rollcall
