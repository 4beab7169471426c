// SPDX-License-Identifier: Apache-2.0
// What the agent of one simulated host says: its hello, its ticks, its answers to requests for
// stacks. Remembers what it has reported, because a tick holds only what has changed.
//
// One owner, no lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rollcall/v1/agent.pb.h"
#include "tests/fleet/fleet_plan.h"

namespace rollcall::fleet {

class HostReport {
 public:
  HostReport(const FleetPlan* plan, int host);

  void FillHello(int64_t tick_ns, v1::Hello* hello) const;
  // As many records of a rank and communicator are enough for a whole tick; 0 means all.
  void SetWholeRecords(uint64_t most) { whole_records_ = most; }
  void FillTick(int64_t now_ns, bool whole, v1::Tick* tick);
  // A stack of two frames, or why there is none.
  void FillStack(uint64_t request, const v1::ProcessRef& process, v1::StackReply* reply) const;

 private:
  // A communicator of a rank, and what of it was sent.
  struct Said {
    uint64_t id = 0;
    int rank = 0;
    int size = 0;
    Standing standing;
    uint64_t records = 0;  // index of the first one that was not sent
    bool destroyed = false;
  };

  void BeginRun(int64_t run);
  void AddEndOfRun(v1::Tick* tick);
  void AddProcess(int local, int64_t now_ns, bool whole, v1::Tick* tick);
  void AddCommunicator(int local, int index, int64_t now_ns, bool whole,
                       v1::ProcessUpdate* process);
  void AddRecords(int rank, bool world, uint64_t first, uint64_t end, v1::RecordBatch* batch) const;
  void FillIdentity(int local, v1::Identity* identity) const;
  void FillEvidence(int local, int64_t now_ns, v1::Evidence* evidence) const;
  uint64_t SignatureOf(int rank, bool world, uint64_t entered) const;
  Said& SaidOf(int local, int index);
  int32_t PidOf(int64_t run, int local) const;

  const FleetPlan* const plan_;
  const int host_;
  const Seat seat_;
  const int communicators_;  // of a rank
  int64_t run_ = -1;
  bool end_sent_ = false;
  uint64_t whole_records_ = 0;
  JobScript script_;
  std::vector<Said> said_;  // by rank of the host, then by communicator
};

}  // namespace rollcall::fleet
