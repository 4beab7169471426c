// SPDX-License-Identifier: Apache-2.0
// Which processes are ranks of one job because they talk with each other by TCP, where no variable
// gives their ranks. Pure.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/outside/connections.h"

namespace rollcall {

// A process without a variable for its rank.
struct Talker {
  pid_t pid = 0, ppid = 0;
  std::string script;                  // as ScriptOf()
  std::vector<std::string> libraries;  // that it has mapped, as LibraryOf()
  bool is_rank = false;                // known to be one, by its threads or libraries
};

// Whether a process with these libraries may be a rank that only its connections show.
bool MayTalkByTcp(const std::vector<std::string>& libraries);

// By pid, of processes that have a peer among `talkers`: the lowest pid of those with which they
// talk, also through others. `is_above`: whether the first process is an ancestor of the second
// one: a child that talks with its parent works for it.
std::map<pid_t, pid_t> FindMeshes(const std::vector<Talker>& talkers,
                                  const std::vector<ConnectedPair>& pairs,
                                  const std::function<bool(pid_t, pid_t)>& is_above);

}  // namespace rollcall
