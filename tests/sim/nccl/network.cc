// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/network.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
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
// before. `base`: steps of earlier collectives.
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
        receive_steps_(is_first_ ? 0 : kSteps),
        send_(comm, call, {number, after_, true, static_cast<int>(send_steps_)}),
        receive_(comm, call, {number, before_, false, static_cast<int>(receive_steps_)}) {}

  bool done() const { return sent_ == send_steps_ && taken_ == receive_steps_; }

  // Does what can be done now. False if there is none.
  bool Progress() {
    bool moved = false;
    if (!Has(comm_, "proxy")) moved = Send() | Receive();
    return RunGpu() | moved;
  }

  // Whatever this rank did not send or receive counts as done for the next collective.
  void Finish() {
    send_.Stop();
    receive_.Stop();
    Own().carried[number_] = base_ + kSteps;
    Own().posted[number_] = base_ + kSteps;
  }

 private:
  RankArea& Own() const { return comm_.segment->area(comm_.rank); }

  bool Send() {
    bool moved = false;
    if (posted_sends_ < send_steps_ && posted_sends_ < sent_ + kUnderWay) {
      send_.BeginStep(posted_sends_);
      send_.Record(posted_sends_++, profiler::kSendGpuWait);
      moved = true;
    }
    if (transmitted_ < posted_sends_ && transmitted_ < produced_) {
      send_.Record(transmitted_, profiler::kSendPeerWait);
      if (IsTaken(transmitted_)) {
        send_.Record(transmitted_++, profiler::kSendWait);
        moved = true;
      }
    }
    if (sent_ < transmitted_ && !Has(comm_, "link") && IsCarried(sent_)) {
      send_.EndStep(sent_++);
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
      receive_.BeginStep(posted_receives_);
      receive_.Record(posted_receives_++, profiler::kReceiveWait);
      Own().posted[number_] = base_ + posted_receives_;
      moved = true;
    }
    if (received_ < posted_receives_ &&
        comm_.segment->area(before_).carried[number_].load() > base_ + received_) {
      receive_.Record(received_, profiler::kReceiveFlushWait);
      receive_.Record(received_++, profiler::kReceiveGpuWait);
      moved = true;
    }
    if (taken_ < consumed_) {
      receive_.EndStep(taken_++);
      moved = true;
    }
    return moved;
  }

  // In a ring a kernel sends what it has received, but for the first step. In a chain the first
  // rank receives nothing, and the others send each step after they have received it.
  bool RunGpu() {
    if (Has(comm_, "kernel")) return false;
    const bool may_take = consumed_ < received_ && !Has(comm_, "take");
    const uint64_t allowed = is_first_ ? kSteps : is_chain_ ? consumed_ : consumed_ + 1;
    const bool may_produce = produced_ < std::min({send_steps_, allowed, sent_ + kUnderWay});
    if (may_take) ++consumed_;
    if (may_produce) ++produced_;
    const bool moved = may_take || may_produce;
    if (moved && Has(comm_, "slow")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return moved;
  }

  Comm& comm_;
  const int number_, before_, after_;
  const uint64_t base_;
  const bool is_chain_, is_first_;
  const uint64_t send_steps_, receive_steps_;
  ProfiledTransfer send_, receive_;
  uint64_t produced_ = 0, posted_sends_ = 0, transmitted_ = 0, sent_ = 0;
  uint64_t posted_receives_ = 0, received_ = 0, consumed_ = 0, taken_ = 0;
};

}  // namespace

bool HasNetwork() {
  static const bool is_on = getenv("ROLLCALL_SIM_NETWORK") != nullptr;
  return is_on;
}

bool RunNetwork(Comm& comm, const Call& call) {
  if (!HasNetwork()) return true;
  const Segment& segment = *comm.segment;
  std::vector<RingChannel> channels;
  channels.reserve(kNetworkChannels);
  for (int number = 0; number < kNetworkChannels; ++number) {
    channels.emplace_back(comm, call, number);
  }
  const auto is_done = [](const RingChannel& channel) { return channel.done(); };
  while (!std::all_of(channels.begin(), channels.end(), is_done)) {
    const uint32_t heard = segment.Listen();
    if (comm.stopped) return false;
    bool moved = false;
    for (RingChannel& channel : channels) moved |= channel.Progress();
    if (!moved) segment.WaitForBell(heard);
    if (!moved) continue;
    segment.Ring((comm.rank + 1) % comm.nranks);
    segment.Ring((comm.rank + comm.nranks - 1) % comm.nranks);
  }
  for (RingChannel& channel : channels) channel.Finish();
  ++comm.network_calls;
  segment.Ring((comm.rank + 1) % comm.nranks);
  segment.Ring((comm.rank + comm.nranks - 1) % comm.nranks);
  return true;
}

}  // namespace rollcall::sim
