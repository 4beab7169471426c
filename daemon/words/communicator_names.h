// SPDX-License-Identifier: Apache-2.0
// The names that people use for communicators.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

// The name that the program gave, as its author wrote it: "dp" for PyTorch's "mesh_dp". Without one
// its ranks: "all ranks", "4 ranks: 0,2,4,6". "" if its ranks' numbers in the job are not known.
std::string NameForPeople(const JobState& job, const Communicator& comm);

// Whether NameForPeople() made the name from ranks.
bool IsMadeOfRanks(const std::string& name);

// CommunicatorInWords() (terms.h) with that name.
std::string CommunicatorInWords(const JobState& job, const Communicator& comm);

}  // namespace rollcall
