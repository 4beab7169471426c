// SPDX-License-Identifier: Apache-2.0
// The state of one rank in one communicator, as a character for views (RankMap in query.proto).
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace rank_state {
inline constexpr char kMoves = '.';
inline constexpr char kWaits = 'w';
inline constexpr char kBeingCreated = 'i';
inline constexpr char kLeft = 'd';
inline constexpr char kExited = 'e';
inline constexpr char kDied = 'x';
inline constexpr char kEnded = 'g';  // exit status unknown
inline constexpr char kSilent = 's';
inline constexpr char kNotSeen = '?';
inline constexpr char kInNone = '-';
}  // namespace rank_state

// Returns '1' for 1 call behind, '2' for 2 and 3, '3' for 4 to 7, ... '9'. `calls` must not be 0.
char LagCharacter(uint64_t calls);

// `most` is the number of calls that the furthest member has entered.
char StateCharacter(const JobState& job, const Communicator& comm, const Member& member,
                    uint64_t most);

uint64_t MostEntered(const Communicator& comm);

}  // namespace rollcall
