// SPDX-License-Identifier: Apache-2.0
// Adds to the stacks of a process what its threads wait for outside of it: the processes that it
// has started, with what they have used, and who is at the other end of a pipe or socket, and whose
// locks of files it waits for.
//
// What reads /proc, and may block, is apart from what works on the message: a blocked read is left
// behind, and the message stays.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/outside/descendants.h"
#include "agent/outside/file_locks.h"
#include "agent/outside/other_ends.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

Starts StartsOf(const Descendants& found);
void AddChildren(const Descendants& found, v1::ProcessStack* stack);
void AddProcess(const Descendant& process, v1::ChildProcess* added);

// Where to look for other ends: which threads of the process and of its children wait, and among
// which processes.
struct OutsideQuestion {
  std::vector<std::pair<pid_t, std::vector<pid_t>>> threads;  // by process
  std::vector<pid_t> family;  // the process, and what it has started
  std::vector<pid_t> neighbours;
  std::vector<pid_t> lockers;  // threads of the process that may wait for the lock of a file
  // The same of its children, by child.
  std::vector<std::pair<pid_t, std::vector<pid_t>>> locking_children;
  Starts starts;  // of what the process has started
};

// `neighbours`: processes of this host that may be at the other end of a socket, or may have
// started one that is. `starts`: of its children.
OutsideQuestion AskOutside(const v1::ProcessStack& stack, const std::vector<pid_t>& neighbours,
                           const Starts& starts);

struct OutsideAnswer {
  std::vector<std::vector<OtherEnd>> ends;  // of the query's threads
  FileLocks locks;                          // of the process, and those for which its children wait
};

// Processes at the other ends of the process's threads that are neither its children nor
// neighbours.
std::vector<pid_t> ListOthers(const v1::ProcessStack& stack, const OutsideQuestion& question);

// Asks the same about the `others` of the stack. `starts`: of these.
OutsideQuestion AskOutsideOfOthers(const v1::ProcessStack& stack, OutsideQuestion before,
                                   const Starts& starts);

// May block: see spare_threads.h.
OutsideAnswer LookOutside(const std::string& proc_root, const OutsideQuestion& question);

void AddOutside(const OutsideQuestion& question, const OutsideAnswer& answer,
                v1::ProcessStack* stack);

}  // namespace rollcall
