// SPDX-License-Identifier: Apache-2.0
// Finds ranks that only their connections show, for the agent's list of unrecorded jobs: peers.h,
// as `rollcall diagnose` finds them, but rarely and within limits. Between two searches it gives
// what the last one has found.
//
// One owner, no lock. Reads on spare threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/collector/peers.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"

namespace rollcall {

class MeshSearch {
 public:
  static constexpr uint64_t kEvery = 10;     // scans
  static constexpr size_t kMostOfUser = 64;  // processes of one user in one search
  static constexpr size_t kMostUsers = 16;   // in one search
  static constexpr size_t kFewest = 2;       // processes of one user that may be peers

  struct Candidate {
    ProcessId process;
    Talker talker;
    int64_t payer = SpareThreads::kNobody;  // as SpareThreads::Run()
  };

  MeshSearch(std::string proc_root, int64_t timeout_ns, std::shared_ptr<SpareThreads> threads)
      : proc_root_(std::move(proc_root)), timeout_ns_(timeout_ns), threads_(std::move(threads)) {}

  // By process, of those that have a peer of the same user: the lowest pid of its mesh. `scan`: its
  // number, which rises. `is_above`: as FindMeshes().
  const std::map<ProcessId, pid_t>& Find(uint64_t scan, const std::vector<Candidate>& candidates,
                                         const std::function<bool(pid_t, pid_t)>& is_above);

 private:
  void SearchUser(int64_t payer, const std::vector<const Candidate*>& candidates,
                  const std::function<bool(pid_t, pid_t)>& is_above);

  const std::string proc_root_;
  const int64_t timeout_ns_;  // of the search among one user's processes
  const std::shared_ptr<SpareThreads> threads_;
  uint64_t searched_in_ = 0;  // 0 if never
  std::map<ProcessId, pid_t> found_;
};

}  // namespace rollcall
