// SPDX-License-Identifier: Apache-2.0
// Chooses which processes of a host are ranks of distributed jobs. Pure.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/diagnose/find.h"
#include "daemon/looks/looked_at.h"

namespace rollcall {

struct ChosenRank {
  size_t at = 0;         // in the processes
  std::string found_by;  // as v1::ProcessLook; kFoundAsZombie (daemon/looks/looked_at.h)
};

// What a process has in common with the others of its job: "rendezvous node-1:29500", or empty.
std::string BestMark(const FoundProcess& process);

// The main process of each rank, by the variables of launchers; processes without such a variable
// that have threads of NCCL or gloo, or MPI or NVSHMEM mapped, or that talk with each other by TCP
// and run one program on JAX, UCC, oneCCL, HCCL or gloo; and ranks that have ended and that no
// parent has waited for ("zombie"). A process below another one of these belongs to it.
//
// `pids`: only the ranks of these processes' jobs; a process among them that is neither a rank nor
// part of one counts as one. Empty means all. `self`: the program that looks. It and the processes
// above it are not ranks, whatever their variables; 0 if not one of these.
std::vector<ChosenRank> ChooseRanks(std::vector<FoundProcess>* processes,
                                    const std::vector<pid_t>& pids, pid_t self);

}  // namespace rollcall
