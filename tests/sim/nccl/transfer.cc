// SPDX-License-Identifier: Apache-2.0
// Sends and receives: all those of a group at once, in order for each peer.
//
// A channel is a ring of bytes; each message is its size and then its data. A send ends when the
// receiver has taken all of it, so one without a receiver hangs (ROLLCALL_SIM_EAGER lets small ones
// go, as real NCCL does at times).
#include <string.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "tests/sim/nccl/network.h"
#include "tests/sim/nccl/options.h"
#include "tests/sim/nccl/profiler.h"
#include "tests/sim/nccl/run.h"

namespace rollcall::sim {
namespace {

// One end of a channel, with the ring's arithmetic.
class Pipe {
 public:
  Pipe(const Segment& segment, int from, int to)
      : channel_(segment.channel(from, to)),
        data_(segment.channel_data(from, to)),
        size_(segment.channel_bytes()) {}

  uint64_t written() const { return channel_.written.load(); }
  uint64_t read() const { return channel_.read.load(); }
  size_t filled() const { return static_cast<size_t>(written() - read()); }
  size_t room() const { return size_ - filled(); }

  void Write(const char* from, size_t count) {
    const uint64_t at = written();
    const size_t start = at % size_, straight = std::min(count, size_ - start);
    memcpy(data_ + start, from, straight);
    memcpy(data_, from + straight, count - straight);
    channel_.written.store(at + count);
  }

  // Drops the bytes if `to` is null.
  void Read(char* to, size_t count) {
    const uint64_t at = read();
    const size_t start = at % size_, straight = std::min(count, size_ - start);
    if (to != nullptr) {
      memcpy(to, data_ + start, straight);
      memcpy(to + straight, data_, count - straight);
    }
    channel_.read.store(at + count);
  }

 private:
  Channel& channel_;
  char* const data_;
  const size_t size_;
};

// A send or receive under way.
struct Transfer {
  const Call* call;
  bool started = false;  // its size is written or read
  uint64_t size = 0;     // of the message
  uint64_t moved = 0;
  std::optional<ProfiledTransfer> profile = {};  // what a profiler plugin sees of it

  void Begin(const Comm& comm) {
    const bool sends = call->function == Function::kSend;
    profile.emplace(comm, *call, TransferFacts{0, call->root, sends, 1});
    profile->BeginStep(0);
    profile->Record(0, sends ? profiler::kSendGpuWait : profiler::kReceiveWait);
  }
  void Moved() {
    if (!profile) return;
    const bool sends = call->function == Function::kSend;
    profile->Record(0, sends ? profiler::kSendPeerWait : profiler::kReceiveFlushWait);
    profile->Record(0, sends ? profiler::kSendWait : profiler::kReceiveGpuWait);
  }
  void End() {
    if (!profile) return;
    profile->EndStep(0);
    profile->Stop();
  }
};

class Transfers {
 public:
  Transfers(Comm& comm, const std::vector<Call>& calls) : comm_(comm), segment_(*comm.segment) {
    std::deque<const Call*> sends_to_self, receives_from_self;
    for (const Call& call : calls) {
      const bool sends = call.function == Function::kSend;
      if (call.root != comm.rank) {
        auto& queue = queues_[{sends, call.root}];
        queue.push_back({&call});
        if (HasNetwork() && queue.size() == 1) queue.back().Begin(comm);
      } else {
        (sends ? sends_to_self : receives_from_self).push_back(&call);
      }
    }
    for (size_t i = 0; i < sends_to_self.size(); ++i) {
      memmove(receives_from_self[i]->recv, sends_to_self[i]->send,
              std::min(receives_from_self[i]->bytes, sends_to_self[i]->bytes));
    }
  }

  void Run() {
    while (!comm_.stopped) {
      const uint32_t heard = segment_.Listen();
      if (comm_.stopped) return;
      bool moved = false, all_done = true;
      for (auto& [end, queue] : queues_) {
        moved |= Progress(end.first, end.second, &queue);
        all_done &= queue.empty();
      }
      if (all_done) return;
      if (!moved) segment_.WaitForBell(heard);
    }
  }

 private:
  bool Progress(bool sends, int peer, std::deque<Transfer>* queue) {
    if (queue->empty()) return false;
    Transfer& transfer = queue->front();
    const bool moved = sends ? Send(peer, &transfer) : Receive(peer, &transfer);
    const bool done = sends ? Sent(peer, transfer) : Received(transfer);
    if (moved) segment_.Ring(peer);
    if (moved) transfer.Moved();
    if (done) {
      transfer.End();
      queue->pop_front();
      if (HasNetwork() && !queue->empty()) queue->front().Begin(comm_);
    }
    return moved || done;
  }

  bool Send(int peer, Transfer* transfer) {
    Pipe pipe(segment_, comm_.rank, peer);
    bool moved = false;
    if (!transfer->started) {
      transfer->size = transfer->call->bytes;
      if (pipe.room() < sizeof(transfer->size)) return false;
      pipe.Write(reinterpret_cast<const char*>(&transfer->size), sizeof(transfer->size));
      transfer->started = moved = true;
    }
    const size_t count = std::min<size_t>(pipe.room(), transfer->size - transfer->moved);
    if (count == 0) return moved;
    pipe.Write(static_cast<const char*>(transfer->call->send) + transfer->moved, count);
    transfer->moved += count;
    return true;
  }

  bool Sent(int peer, const Transfer& transfer) {
    if (!transfer.started || transfer.moved < transfer.size) return false;
    if (transfer.size <= GetOptions().eager_bytes) return true;
    return Pipe(segment_, comm_.rank, peer).filled() == 0;
  }

  bool Receive(int peer, Transfer* transfer) {
    Pipe pipe(segment_, peer, comm_.rank);
    bool moved = false;
    if (!transfer->started) {
      if (pipe.filled() < sizeof(transfer->size)) return false;
      pipe.Read(reinterpret_cast<char*>(&transfer->size), sizeof(transfer->size));
      transfer->started = moved = true;
    }
    const uint64_t wanted = transfer->call->bytes;
    // A message of another size is never taken; or what fits of it is.
    if (transfer->size != wanted && !GetOptions().mismatch_is_wrong) return moved;
    const size_t count = std::min<size_t>(pipe.filled(), transfer->size - transfer->moved);
    if (count == 0) return moved;
    char* to = static_cast<char*>(transfer->call->recv) + transfer->moved;
    const uint64_t space = wanted - std::min(wanted, transfer->moved);
    const size_t kept = std::min<size_t>(count, space);
    pipe.Read(to, kept);
    pipe.Read(nullptr, count - kept);
    transfer->moved += count;
    return true;
  }

  bool Received(const Transfer& transfer) const {
    if (!transfer.started || transfer.moved < transfer.size) return false;
    return transfer.size == transfer.call->bytes || GetOptions().mismatch_is_wrong;
  }

  Comm& comm_;
  const Segment& segment_;
  std::map<std::pair<bool, int>, std::deque<Transfer>> queues_;  // by {sends, peer}
};

}  // namespace

void RunTransfers(Comm& comm, const std::vector<Call>& calls) { Transfers(comm, calls).Run(); }

}  // namespace rollcall::sim
