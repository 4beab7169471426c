// SPDX-License-Identifier: Apache-2.0
// A job of MPI for the tests of rules: counts of messages, and the threads that wait for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "steps_of_calls.h"

namespace rollcall {

// A job whose ranks send each other messages of MPI.
class MessageJob {
 public:
  explicit MessageJob(int ranks) : job(ranks) {
    job.comm().counts_messages = true;
    for (int rank = 0; rank < ranks; ++rank) Set(rank);
  }

  PeerMessages* With(int rank, int peer, int tag) {
    std::vector<PeerMessages>& all = counts(rank).by_peer;
    for (PeerMessages& with : all) {
      if (with.peer == peer && with.tag == tag) return &with;
    }
    all.push_back({peer, tag});
    return &all.back();
  }
  MessageCounts& counts(int rank) { return all_[static_cast<size_t>(rank)]; }

  void Sent(int rank, int peer, int tag, uint32_t n) { With(rank, peer, tag)->sends += n; }
  void Received(int rank, int peer, int tag, uint32_t n) { With(rank, peer, tag)->receives += n; }
  // These wait in the next message, in the main thread.
  void Send(int rank, int peer, int tag, double at, Op op = Op::kMPI_Send) {
    PeerMessages* with = With(rank, peer, tag);
    with->sends_awaited = ++with->sends;
    Wait(rank, op, at);
  }
  void Receive(int rank, int peer, int tag, double at, Op op = Op::kMPI_Recv) {
    PeerMessages* with = With(rank, peer, tag);
    with->receives_awaited = ++with->receives;
    Wait(rank, op, at);
  }
  // Posts `n` receives, without a wait.
  void Post(int rank, int peer, int tag, uint32_t n) { With(rank, peer, tag)->receives += n; }
  // A thread beside the main one waits for the next message.
  void Listen(int rank, int peer, int tag, double at, Op op = Op::kMPI_Recv) {
    PeerMessages* with = With(rank, peer, tag);
    with->receives_awaited = ++with->receives;
    NoteWait(rank, at);
    job.process(rank).blocked.push_back({kListener, op, kDp, At(at)});
  }
  // It has issued its newest message at this time.
  void Move(int rank, double at) { counts(rank).moved_ns = At(at); }
  // A sample of its stacks: the main thread sleeps in these functions.
  void Stand(int rank, const std::string& functions, double at) {
    Process& process = job.process(rank);
    process.stacks_ns = At(at);
    process.thread_places = {{kListener, "", MakePlace(" MPI_Recv Listen ")},
                             {Main(rank), "", MakePlace(functions)}};
  }
  void Leave(int rank, double at) { job.TearDown(rank, Op::kMPI_Finalize, At(at)); }

  std::vector<Verdict> Judge(double at = 70) {
    for (int rank = 0; rank < static_cast<int>(all_.size()); ++rank) Set(rank);
    return Diagnose(job.state, At(at), Limits());
  }

  uint32_t Main(int rank) { return static_cast<uint32_t>(job.process(rank).pid); }
  static StackPlace MakePlace(const std::string& functions) {
    StackPlace place;
    place.at = "server.c:7 in main";
    place.sleeps = true;
    place.functions = functions;
    return place;
  }

  static constexpr uint32_t kListener = 9001;
  JobBuilder job;

 private:
  void Set(int rank) {
    if (static_cast<size_t>(rank) >= all_.size()) all_.resize(static_cast<size_t>(rank) + 1);
    std::vector<PeerMessages>& all = counts(rank).by_peer;
    std::sort(all.begin(), all.end(), [](const PeerMessages& a, const PeerMessages& b) {
      return std::tie(a.peer, a.tag) < std::tie(b.peer, b.tag);
    });
    job.member(rank).messages = std::make_shared<MessageCounts>(counts(rank));
  }
  // As the agent reports it: since the first of its threads.
  void NoteWait(int rank, double at) {
    int64_t* since_ns = &job.member(rank).p2p_waiting_since_ns;
    *since_ns = *since_ns == 0 ? At(at) : std::min(*since_ns, At(at));
  }
  void Wait(int rank, Op op, double at) {
    NoteWait(rank, at);
    job.process(rank).blocked.insert(job.process(rank).blocked.begin(),
                                     {Main(rank), op, kDp, At(at)});
  }
  std::vector<MessageCounts> all_;
};

}  // namespace rollcall
