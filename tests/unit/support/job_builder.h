// SPDX-License-Identifier: Apache-2.0
// A small language for the state of a job, as the rules see it:
//
//   JobBuilder job(4);             // 4 ranks on node-0 .. node-3, communicator "dp", GPU markers
//   job.Finish(24);                // all ranks make 24 calls, which finish
//   job.Enter({0, 1, 2}, At(10));  // these enter one more, and wait in it
//   job.Exit(3, At(11));
//   Diagnose(job.state, At(70), limits)
//
// Histories are as the library writes them: records, signatures, checkpoints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "interpose/segment.h"

namespace rollcall {

inline constexpr uint64_t kDp = 0xa91f0c2200000001;
inline constexpr int64_t kSecondNs = 1'000'000'000;

// Seconds of the test's time, as nanoseconds since the epoch.
inline int64_t At(double seconds) {
  return 1'700'000'000 * kSecondNs + static_cast<int64_t>(seconds * 1e9);
}

inline CallArgs AllReduce(uint64_t count = 1048576) {
  return {Op::kAllReduce, 7, 0, kNoPeer, count};
}
inline CallArgs Broadcast(uint64_t count = 128, int32_t root = 0) {
  return {Op::kBroadcast, 7, kNoReduction, root, count};
}
inline CallArgs AllGather(uint64_t count = 4096) {
  return {Op::kAllGather, 7, kNoReduction, kNoPeer, count};
}
inline CallArgs Send(int32_t peer, uint64_t count = 64) {
  return {Op::kSend, 7, kNoReduction, peer, count};
}
inline CallArgs Recv(int32_t peer, uint64_t count = 64) {
  return {Op::kRecv, 7, kNoReduction, peer, count};
}

class JobBuilder {
 public:
  explicit JobBuilder(int ranks, bool markers = true) : markers_(markers) {
    state.key = JobKey("train");
    for (int rank = 0; rank < ranks; ++rank) {
      Process process;
      process.host = "node-" + std::to_string(rank);
      process.pid = 4000 + rank;
      process.start_time = 100 + static_cast<uint64_t>(rank);
      process.global_rank = rank;
      process.world_size = ranks;
      process.local_rank = 0;
      process.has_segment = true;
      process.liveness = Liveness::kAlive;
      process.state = 'S';
      state.processes.push_back(process);
    }
    if (ranks > 0) AddCommunicator(kDp, "dp", Ranks(0, ranks));
  }

  static std::vector<int> Ranks(int begin, int end) {
    std::vector<int> ranks;
    for (int rank = begin; rank < end; ++rank) ranks.push_back(rank);
    return ranks;
  }

  // A communicator whose nth rank is the nth of `processes`, all ready.
  void AddCommunicator(uint64_t id, const std::string& name, const std::vector<int>& processes) {
    Communicator& comm = state.communicators[id];
    comm.id = id;
    comm.name = name;
    comm.size = static_cast<int32_t>(processes.size());
    for (size_t rank = 0; rank < processes.size(); ++rank) {
      Member& member = comm.members[static_cast<int32_t>(rank)];
      member.process = processes[rank];
      member.device = static_cast<int32_t>(rank);
      member.state = MemberState::kReady;
      member.has_markers = markers_;
      member.signature = segment::kSignatureSeed;
    }
    all_of_[id] = Ranks(0, comm.size);
    current_ = id;
  }

  // The following calls are about this communicator.
  void On(uint64_t id) { current_ = id; }

  Communicator& comm() { return state.communicators.at(current_); }
  Member& member(int rank) { return comm().members.at(rank); }
  Process& process(int rank) {
    return state.processes.at(static_cast<size_t>(member(rank).process));
  }

  // These ranks make `n` calls, 10 ms apart from `from` on, which finish.
  void Finish(const std::vector<int>& ranks, int n, CallArgs args = AllReduce(),
              int64_t from = At(0)) {
    for (const int rank : ranks) {
      for (int i = 0; i < n; ++i) {
        Note(rank, args, from + i * kSecondNs / 100);
        Member& m = member(rank);
        m.returned = m.entered;
        if (m.has_markers) m.started = m.finished = m.entered;
        m.records.back().returned_ns = m.records.back().entered_ns + 1000;
      }
    }
  }
  void Finish(int n, CallArgs args = AllReduce()) { Finish(all_of_[current_], n, args); }

  // These ranks enter one more call: the GPU reaches it and does not finish it.
  // Without markers the host waits for the GPU right after it.
  void Enter(const std::vector<int>& ranks, int64_t at, CallArgs args = AllReduce()) {
    for (const int rank : ranks) {
      Note(rank, args, at);
      Member& m = member(rank);
      m.returned = m.entered;
      if (m.has_markers) {
        m.started = m.entered;
        if (m.waiting_since_ns == 0) m.waiting_since_ns = at;
      } else {
        m.host_waits_since_ns = at;
        process(rank).blocked = {{1, Op::kcudaStreamSynchronize, 0, at}};
      }
    }
  }

  // This rank issues a send or receive; `group` as in CallRecord. With markers
  // its GPU starts it unless an earlier operation blocks it.
  void Issue(int rank, CallArgs args, int64_t at, uint16_t group = 0) {
    Member& m = member(rank);
    CallRecord record;
    record.index = m.records.empty() ? 0 : m.records.back().index + 1;
    record.position = m.entered;
    record.args = args;
    record.entered_ns = at;
    record.returned_ns = at + 1000;
    record.group = group;
    record.thread = 1;
    PeerTraffic* traffic = std::find_if(m.traffic.begin(), m.traffic.end(),
                                        [&](const auto& t) { return t.peer == args.peer; });
    if (traffic == m.traffic.end()) {
      m.traffic.push_back({args.peer, 0, 0});
      traffic = &m.traffic.back();
    }
    ++(args.op == Op::kSend ? traffic->sends : traffic->receives);
    const bool same_group = group != 0 && !m.records.empty() && m.records.back().group == group;
    m.records.push_back(record);
    m.p2p_returned = ++m.p2p_entered;
    if (m.has_markers && (m.p2p_started == m.p2p_finished || same_group)) {
      m.p2p_started = m.p2p_entered;
      if (m.p2p_waiting_since_ns == 0) m.p2p_waiting_since_ns = at;
    } else if (!m.has_markers) {
      m.host_waits_since_ns = at;
      process(rank).blocked = {{1, Op::kcudaStreamSynchronize, 0, at}};
    }
  }

  // Finishes the rank's sends and receives.
  void CompleteP2p(const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      Member& m = member(rank);
      m.p2p_waiting_since_ns = m.host_waits_since_ns = 0;
      if (m.has_markers) m.p2p_started = m.p2p_finished = m.p2p_entered;
      process(rank).blocked.clear();
    }
  }

  // The host is inside a call that ends the communicator.
  void TearDown(int rank, Op op, int64_t at) {
    member(rank).state = op == Op::kCommAbort ? MemberState::kAborted : MemberState::kFinalizing;
    member(rank).state_since_ns = at;
    process(rank).blocked = {{1, op, current_, at}};
  }

  // The host is inside the newest call (first contact with a peer).
  void Block(const std::vector<int>& ranks, int64_t at) {
    for (const int rank : ranks) {
      member(rank).host_blocked_since_ns = at;
      process(rank).blocked = {{1, member(rank).records.back().args.op, current_, at}};
    }
  }

  // The GPU finishes all its open calls.
  void Complete(const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      Member& m = member(rank);
      m.waiting_since_ns = m.host_waits_since_ns = m.host_blocked_since_ns = 0;
      if (m.has_markers) m.started = m.finished = m.entered;
      process(rank).blocked.clear();
    }
  }

  void Exit(int rank, int64_t at) {
    End(rank, Liveness::kExited, at);
    process(rank).exit_code = 0;
  }
  // The agent cannot see the process. The agent only learns that the process has ended.
  void EndUnseen(int rank, int64_t at) { End(rank, Liveness::kEnded, at); }
  void Die(int rank, int64_t at, int signal = 9) {
    End(rank, Liveness::kDied, at);
    process(rank).exit_signal = signal;
  }

  // This rank is inside the creation of the communicator.
  void Initializing(int rank, int64_t since) {
    member(rank).state = MemberState::kInitializing;
    member(rank).init_entered_ns = since;
  }

  // Records of calls before `position` are overwritten on all ranks.
  void LoseRecordsBefore(uint64_t position) {
    for (auto& [rank, m] : comm().members) {
      while (!m.records.empty() && m.records.front().position < position) {
        m.records.erase(m.records.begin(), m.records.begin() + 1);
        ++m.records_lost;
      }
    }
  }

  JobState state;

 private:
  void Note(int rank, CallArgs args, int64_t at) {
    Member& m = member(rank);
    CallRecord record;
    record.index = m.records.empty() ? m.entered : m.records.back().index + 1;
    record.position = m.entered;
    record.args = args;
    record.entered_ns = at;
    m.records.push_back(record);
    m.signature = segment::NextSignature(m.signature, static_cast<uint8_t>(Canonical(args.op)),
                                         args.dtype, args.reduction, args.peer, args.count);
    ++m.entered;
    if (m.entered % segment::kCheckpointInterval == 0) {
      m.checkpoints.push_back({m.entered, m.signature});
    }
  }

  void End(int rank, Liveness liveness, int64_t at) {
    process(rank).liveness = liveness;
    process(rank).ended_ns = at;
    process(rank).blocked.clear();
  }

  bool markers_;
  uint64_t current_ = 0;
  std::map<uint64_t, std::vector<int>> all_of_;
};

// The parts of verdicts that tests compare.
inline std::vector<int32_t> CulpritRanks(const std::vector<Culprit>& culprits) {
  std::vector<int32_t> ranks;
  for (const Culprit& culprit : culprits) {
    for (int32_t i = 0; i < culprit.ranks; ++i) ranks.push_back(culprit.rank + i);
  }
  return ranks;
}

}  // namespace rollcall
