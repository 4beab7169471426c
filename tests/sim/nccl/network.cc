// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/network.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/sim/nccl/options.h"
#include "tests/sim/nccl/profiler.h"

namespace rollcall::sim {
namespace {

constexpr uint64_t kSteps = 16;    // of a collective
constexpr uint64_t kUnderWay = 8;  // steps of NCCL (NCCL_STEPS)
constexpr uint64_t kInSocket = 2;

struct Fault {
  std::string kind;
  int rank = -1;
  uint64_t from = 0;
};

std::vector<Fault> ReadFaults() {
  std::vector<Fault> faults;
  const char* value = getenv("ROLLCALL_SIM_NETWORK_FAULT");
  for (const char* at = value; at != nullptr && *at != '\0';) {
    const char* colon = strchr(at, ':');
    if (colon == nullptr) break;
    Fault fault{std::string(at, colon), atoi(colon + 1), 0};
    const char* end = strchrnul(at, ',');
    const char* from = strchr(colon, '@');
    if (from != nullptr && from < end) fault.from = strtoull(from + 1, nullptr, 10);
    faults.push_back(fault);
    at = *end == '\0' ? end : end + 1;
  }
  return faults;
}

// The fault that this rank has in this collective.
bool Has(const Comm& comm, const char* kind) {
  static const std::vector<Fault> faults = ReadFaults();
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return fault.kind == kind && fault.rank == comm.rank && comm.network_calls >= fault.from;
  });
}

// One channel of a collective: what this rank sends to the next one and receives from the one
// before. `base`: steps of earlier collectives. RunGpu() belongs to the stream's thread, the rest
// to the proxy's; each counter has one writer.
class RingChannel {
 public:
  RingChannel(Comm& comm, const Call& call, int number)
      : comm_(comm),
        number_(number),
        before_((comm.rank + comm.nranks - 1) % comm.nranks),
        after_((comm.rank + 1) % comm.nranks),
        base_(comm.network_calls * kSteps),
        is_chain_(call.function == Function::kBroadcast),
        is_first_(is_chain_ && comm.rank == call.root),
        send_steps_(is_chain_ && after_ == call.root ? 0 : kSteps),
        receive_steps_(is_first_ ? 0 : kSteps) {}

  bool done() const { return sent_ == send_steps_ && taken_ == receive_steps_; }

  // Posts what this rank sends and receives.
  void Post(const Call& call) {
    send_.emplace(comm_, call, TransferFacts{number_, after_, true, static_cast<int>(send_steps_)});
    receive_.emplace(comm_, call,
                     TransferFacts{number_, before_, false, static_cast<int>(receive_steps_)});
  }

  // Does what can be done now. False if there is none.
  bool Progress() { return !Has(comm_, "proxy") && (Send() | Receive()); }

  // Whatever this rank did not send or receive counts as done for the next collective.
  void Finish() {
    send_->Stop();
    receive_->Stop();
    Own().carried[number_] = base_ + kSteps;
    Own().posted[number_] = base_ + kSteps;
  }

  // In a ring a kernel sends what it has received, but for the first step. In a chain the first
  // rank receives nothing, and the others send each step after they have received it.
  bool RunGpu() {
    if (Has(comm_, "kernel")) return false;
    const uint64_t taken = consumed_;
    const bool may_take = taken < received_ && !Has(comm_, "take");
    const uint64_t allowed = is_first_ ? kSteps : is_chain_ ? taken : taken + 1;
    const bool may_produce = produced_ < std::min({send_steps_, allowed, sent_ + kUnderWay});
    if (may_take) ++consumed_;
    if (may_produce) ++produced_;
    const bool moved = may_take || may_produce;
    if (moved && Has(comm_, "slow")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return moved;
  }

 private:
  RankArea& Own() const { return comm_.segment->area(comm_.rank); }

  bool Send() {
    bool moved = false;
    if (posted_sends_ < send_steps_ && posted_sends_ < sent_ + kUnderWay) {
      send_->BeginStep(posted_sends_);
      send_->Record(posted_sends_++, profiler::kSendGpuWait);
      moved = true;
    }
    if (transmitted_ < posted_sends_ && transmitted_ < produced_) {
      send_->Record(transmitted_, profiler::kSendPeerWait);
      if (IsTaken(transmitted_)) {
        send_->Record(transmitted_++, profiler::kSendWait);
        moved = true;
      }
    }
    if (sent_ < transmitted_ && !Has(comm_, "link") && IsCarried(sent_)) {
      send_->EndStep(sent_++);
      Own().carried[number_] = base_ + sent_;
      moved = true;
    }
    return moved;
  }

  // Whether the network accepts the step; whether it has brought it to the receiver's host.
  bool IsTaken(uint64_t step) const { return !WaitsForPeer() || PeerHasPosted() > base_ + step; }
  bool IsCarried(uint64_t step) const {
    return PeerHasPosted() + (WaitsForPeer() ? 0 : kInSocket) > base_ + step;
  }
  static bool WaitsForPeer() { return EnvironmentIs("ROLLCALL_SIM_NETWORK", "ib"); }
  uint64_t PeerHasPosted() const { return comm_.segment->area(after_).posted[number_].load(); }

  bool Receive() {
    bool moved = false;
    if (posted_receives_ < receive_steps_ && posted_receives_ < taken_ + kUnderWay) {
      receive_->BeginStep(posted_receives_);
      receive_->Record(posted_receives_++, profiler::kReceiveWait);
      Own().posted[number_] = base_ + posted_receives_;
      moved = true;
    }
    if (received_ < posted_receives_ &&
        comm_.segment->area(before_).carried[number_].load() > base_ + received_) {
      receive_->Record(received_, profiler::kReceiveFlushWait);
      receive_->Record(received_++, profiler::kReceiveGpuWait);
      moved = true;
    }
    if (taken_ < consumed_) {
      receive_->EndStep(taken_++);
      moved = true;
    }
    return moved;
  }

  Comm& comm_;
  const int number_, before_, after_;
  const uint64_t base_;
  const bool is_chain_, is_first_;
  const uint64_t send_steps_, receive_steps_;
  std::optional<ProfiledTransfer> send_, receive_;
  std::atomic<uint64_t> produced_{0}, consumed_{0};  // the GPU's
  std::atomic<uint64_t> sent_{0}, received_{0};      // the proxy's, which the GPU reads
  uint64_t posted_sends_ = 0, transmitted_ = 0, posted_receives_ = 0, taken_ = 0;
};

// A collective on all channels. Two threads have it: one of them may be held for good, while the
// communicator is stopped.
class Round {
 public:
  Round(CommRef comm, const Call& call) : comm_(std::move(comm)), call_(call) {
    for (int number = 0; number < kNetworkChannels; ++number) {
      channels_.emplace_back(*comm_, call_, number);
    }
  }

  // The proxy's part.
  void Serve() {
    for (RingChannel& channel : channels_) channel.Post(call_);
    const auto is_done = [](const RingChannel& channel) { return channel.done(); };
    while (!std::all_of(channels_.begin(), channels_.end(), is_done)) {
      const uint32_t heard = segment().Listen();
      if (comm_->stopped) return;
      bool moved = false;
      for (RingChannel& channel : channels_) moved |= channel.Progress();
      moved ? RingNeighbours() : segment().WaitForBell(heard);
    }
    for (RingChannel& channel : channels_) channel.Finish();
    is_over_ = true;
    RingNeighbours();
  }

  // The GPU's part. False if the communicator is stopped.
  bool Compute() {
    while (!is_over_) {
      const uint32_t heard = segment().Listen();
      if (comm_->stopped) return false;
      if (is_over_) break;
      bool moved = false;
      for (RingChannel& channel : channels_) moved |= channel.RunGpu();
      moved ? segment().Ring(comm_->rank) : segment().WaitForBell(heard);
    }
    return true;
  }

 private:
  const Segment& segment() const { return *comm_->segment; }
  // With the other thread of this rank.
  void RingNeighbours() const {
    for (const int step : {0, 1, comm_->nranks - 1}) {
      segment().Ring((comm_->rank + step) % comm_->nranks);
    }
  }

  const CommRef comm_;
  const Call call_;
  std::deque<RingChannel> channels_;
  std::atomic<bool> is_over_{false};
};

}  // namespace

bool HasNetwork() {
  static const bool is_on = getenv("ROLLCALL_SIM_NETWORK") != nullptr;
  return is_on;
}

bool RunNetwork(Comm& comm, const Call& call) {
  if (!HasNetwork()) return true;
  if (comm.proxy == nullptr) comm.proxy = std::make_unique<Proxy>(comm.device);
  const auto round = std::make_shared<Round>(comm.shared_from_this(), call);
  comm.proxy->Run([round] { round->Serve(); });
  if (!round->Compute()) return false;
  ++comm.network_calls;
  return true;
}

}  // namespace rollcall::sim
