// SPDX-License-Identifier: Apache-2.0
// Large jobs in which very many ranks are at fault at once, for tests and benches of the cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall::large_job {

inline constexpr int64_t kSecondNs = 1'000'000'000;
inline constexpr int64_t kStart = 1'700'000'000 * kSecondNs;
inline constexpr int64_t kNow = kStart + 100 * kSecondNs;
inline constexpr int32_t kRanksPerHost = 8;

enum class Fault : uint8_t {
  kHalfMissing,       // every second rank has not entered the call
  kFirstHalfMissing,  // the lower half of the ranks has not, and no program reports its step
  kHostsSilent,       // the agents of the second half of the hosts no longer report
  kAllErrors,         // NCCL has reported an error on every rank
  kHalfStopped,       // a signal has stopped every second rank inside the call
  kAllDiffer,         // every rank has called with its own count
  kAllCaptured,       // every second rank has captured the call into a CUDA graph
  kGuessedExcuse,     // every second rank may wait in a call on another communicator
  kTwoOpen,           // all ranks have entered two calls, and neither ends
  kInStore,           // every second rank waits in the store to send its first message
  kRingStands,        // one GPU of a ring sends nothing; 32,768 ranks at most have their transfers
};

inline constexpr struct {
  Fault fault;
  const char* name;
} kFaults[] = {
    {Fault::kHalfMissing, "half missing"},  {Fault::kFirstHalfMissing, "first half missing"},
    {Fault::kHostsSilent, "hosts silent"},  {Fault::kAllErrors, "NCCL errors"},
    {Fault::kHalfStopped, "half stopped"},  {Fault::kAllDiffer, "all differ"},
    {Fault::kAllCaptured, "half captured"}, {Fault::kGuessedExcuse, "half excused"},
    {Fault::kTwoOpen, "two open"},          {Fault::kInStore, "half in the store"},
    {Fault::kRingStands, "ring stands"},
};

inline CallRecord MakeRecord(uint64_t position, uint64_t count) {
  CallRecord record;
  record.index = record.position = position;
  record.args = {Op::kAllReduce, 7, 0, kNoPeer, count};
  record.entered_ns = kStart;
  record.site = 1;
  return record;
}

inline void SetRecords(std::initializer_list<CallRecord> records, Member* member) {
  member->records = LazyVector<CallRecord>();
  for (const CallRecord& record : records) member->records.push_back(record);
}

// What a rank waits for in a ring over two channels, each rank on a host of its own: for data from
// the rank before it, which the one in the middle has and does not pass on.
inline void SetTransfers(int32_t rank, int32_t ranks, Process* process) {
  if (rank >= 32768) return;
  const bool has_data = rank == std::min(ranks, 32768) / 2;
  NetworkSample sample;
  sample.communicator = 1;
  sample.rank = sample.process = rank;
  for (const int32_t channel : {0, 1}) {
    for (const bool sends : {true, false}) {
      NetworkState state;
      state.channel = channel;
      state.peer = (rank + (sends ? 1 : ranks - 1)) % ranks;
      state.sends = sends;
      state.begun = 8;
      state.ended = !sends && has_data ? 8 : 4;
      state.wait = sends      ? NetworkWait::kSendGpu
                   : has_data ? NetworkWait::kNone
                              : NetworkWait::kReceive;
      state.since_ns = kStart + kSecondNs;
      sample.states.push_back(state);
    }
  }
  process->network = std::make_shared<const std::vector<NetworkSample>>(1, sample);
  process->network_ns = kNow - kSecondNs;
}

inline void SetFault(Fault fault, int32_t rank, int32_t ranks, Process* process, Member* member) {
  const bool second = rank % 2 == 1;
  const auto leave_out = [&] {
    member->entered = member->started = member->returned = member->finished = 1;
    member->waiting_since_ns = 0;
    SetRecords({MakeRecord(0, 1024)}, member);
  };
  switch (fault) {
    case Fault::kHalfMissing:
      if (second) leave_out();
      break;
    case Fault::kFirstHalfMissing:
      if (rank < ranks / 2) leave_out();
      process->step = -1;
      break;
    case Fault::kHostsSilent:
      if (rank < ranks / 2) break;
      leave_out();
      process->liveness = Liveness::kSilent;
      break;
    case Fault::kAllErrors:
      member->async_error = 2;
      break;
    case Fault::kHalfStopped:
      if (second) process->state = 'T';
      break;
    case Fault::kAllDiffer:
      SetRecords({MakeRecord(0, 1024), MakeRecord(1, 1024 + static_cast<uint64_t>(rank))}, member);
      member->signature = static_cast<uint64_t>(rank) + 1;
      break;
    case Fault::kAllCaptured:
      if (!second) break;
      leave_out();
      SetRecords({MakeRecord(0, 1024), MakeRecord(1, 1024)}, member);
      member->records.back().captured = true;
      break;
    case Fault::kGuessedExcuse:
      if (second) leave_out();
      break;
    case Fault::kTwoOpen:
      break;
    case Fault::kRingStands:
      SetTransfers(rank, ranks, process);
      break;
    case Fault::kInStore:
      if (!second) break;
      leave_out();
      process->waits_outside_since_ns = kStart;
      process->place.functions = " c10d::TCPStore::doGet distributed_c10d.send ";
      break;
  }
}

inline void AddMember(Fault fault, int32_t rank, int32_t ranks, Process* process,
                      Communicator* comm) {
  Member& member = comm->members[rank];
  member.process = rank;
  member.state = MemberState::kReady;
  member.has_markers = true;
  member.entered = member.started = member.returned = 2;
  member.finished = 1;
  member.waiting_since_ns = kStart;
  SetRecords({MakeRecord(0, 1024), MakeRecord(1, 1024)}, &member);
  SetFault(fault, rank, ranks, process, &member);
}

// The call of all ranks without markers: no evidence shows that they wait in it.
inline void AddGuess(int32_t rank, Communicator* comm) {
  Member& member = comm->members[rank];
  member.process = rank;
  member.state = MemberState::kReady;
  member.entered = 2;
  member.returned = 2;
  SetRecords({MakeRecord(0, 1024), MakeRecord(1, 1024)}, &member);
  member.host_waits_since_ns = kStart;
}

inline JobState MakeJob(Fault fault, int32_t ranks) {
  JobState job;
  job.key.job = "large";
  job.processes.resize(static_cast<size_t>(ranks));
  Communicator& world = job.communicators[1];
  world.id = 1;
  world.name = "world";
  world.size = ranks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const int32_t host = rank / kRanksPerHost;
    if (rank % kRanksPerHost == 0) {
      AgentState agent;
      agent.id = agent.host = "node-" + std::to_string(host);
      agent.heard_ns = kNow;
      agent.silent = fault == Fault::kHostsSilent && rank >= ranks / 2;
      job.agents.push_back(agent);
    }
    Process& process = job.processes[static_cast<size_t>(rank)];
    process.agent = host;
    process.host = "node-" + std::to_string(host);
    process.pid = 4000 + rank % kRanksPerHost;
    process.global_rank = rank;
    process.world_size = ranks;
    process.has_segment = true;
    process.liveness = Liveness::kAlive;
    process.state = 'S';
    process.sites = {"/x/train.py:57 in train_epoch"};
    process.unknown_comm_calls = 1;
    process.step = rank % 2;
    AddMember(fault, rank, ranks, &process, &world);
  }
  if (fault != Fault::kGuessedExcuse && fault != Fault::kTwoOpen) return job;
  Communicator& other = job.communicators[2];
  other.id = 2;
  other.name = "other";
  other.size = ranks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (fault == Fault::kGuessedExcuse) AddGuess(rank, &other);
    if (fault == Fault::kTwoOpen) {
      AddMember(fault, rank, ranks, &job.processes[static_cast<size_t>(rank)], &other);
    }
  }
  return job;
}

}  // namespace rollcall::large_job
