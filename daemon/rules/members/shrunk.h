// SPDX-License-Identifier: Apache-2.0
// Which ranks of its parent a shrink excludes.
//
// No rank reports them, but the id that the ranks inside the shrink compute contains them
// (interpose/child_ids.h). So the search tries which of the ranks that have not joined belong to
// the id.
#pragma once

#include <optional>

#include "daemon/model/job_state.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {

struct ShrunkRanks {
  RankRanges excluded;
  RankRanges late;  // have not joined, and the shrink does not exclude them
};

// `unjoined`: the ranks of the parent that are not inside the shrink. None if the id shows nothing:
// the parent is not known, or too many ranks are both late and excluded.
std::optional<ShrunkRanks> FindExcluded(const Communicator& comm, const RankRanges& unjoined);

}  // namespace rollcall
