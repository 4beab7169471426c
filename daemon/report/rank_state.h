// SPDX-License-Identifier: Apache-2.0
// The state of one rank in one communicator, as a character for views (RankMap in query.proto).
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace rank_state {
inline constexpr char kMoves = '.';
inline constexpr char kWaits = 'w';
inline constexpr char kWaitsElsewhere = 'o';  // on another communicator
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

// The states of a job's ranks. Looks at all members once. Refers to the job.
class RankStates {
 public:
  explicit RankStates(const JobState& job);

  // `most` is the number of calls that the furthest member has entered.
  char Of(const Communicator& comm, const Member& member, uint64_t most) const;

 private:
  const JobState& job_;
  std::vector<bool> waits_;  // by process: in a call on any communicator
};

uint64_t MostEntered(const Communicator& comm);

}  // namespace rollcall
