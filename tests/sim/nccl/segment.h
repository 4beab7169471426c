// SPDX-License-Identifier: Apache-2.0
// The memory that the ranks of one communicator share: gates they meet at,
// slots for collectives, channels for sends and receives.
//
// A file in /dev/shm, gone from there as soon as all ranks have it mapped. All zero is its first
// state, so the first process need not prepare anything. Nothing in it is a lock: a rank that is
// killed can leave nothing held, only its own part undone, for which the others wait.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rollcall::sim {

// Channels of the simulated network (network.h).
inline constexpr int kNetworkChannels = 2;

// Where ranks wait for each other. Separate, so that ranks in different calls
// never take each other's arrival for their own.
enum Gate { kDeviceGate, kConnectGate, kSplitGate, kWindowGate, kDestroyGate, kGates };

// What a rank is about to do in a collective; compared by all ranks.
struct Descriptor {
  uint64_t bytes;
  int32_t function;
  int32_t root;
  int32_t dtype;
  int32_t op;
};

struct SplitChoice {
  int32_t color;
  int32_t key;
};

struct alignas(256) RankArea {
  std::atomic<uint32_t> bell;  // rung, and waited on, when something changed for this rank
  std::atomic<uint32_t> attached;
  std::atomic<int32_t> pid;
  Descriptor descriptors[2];
  SplitChoice choices[2];
  // Of the simulated network (network.h), over all collectives: the steps that this rank has sent
  // to the next one and that have arrived, and those for whose receive it is ready.
  std::atomic<uint64_t> carried[kNetworkChannels], posted[kNetworkChannels];
};

// Bytes on their way from one rank to another.
struct alignas(64) Channel {
  std::atomic<uint64_t> written;
  std::atomic<uint64_t> read;
  std::atomic<uint32_t> sender_there;
  std::atomic<uint32_t> receiver_there;
};

class Segment {
 public:
  ~Segment();
  // Maps the segment called `name` as `rank` of `nranks`. Does not wait.
  static ncclResult_t Open(const std::string& name, int nranks, int rank,
                           std::unique_ptr<Segment>* segment);

  RankArea& area(int rank) const { return areas_[rank]; }
  char* slot(int rank, int parity) const {
    return slots_ + (size_t{2} * rank + parity) * slot_bytes_;
  }
  size_t slot_bytes() const { return slot_bytes_; }
  Channel& channel(int from, int to) const {
    return *reinterpret_cast<Channel*>(channels_ + Index(from, to) * channel_stride_);
  }
  char* channel_data(int from, int to) const {
    return reinterpret_cast<char*>(&channel(from, to)) + sizeof(Channel);
  }
  size_t channel_bytes() const { return channel_stride_ - sizeof(Channel); }
  // Takes the memory of a channel now; false if /dev/shm is full.
  bool ReserveChannel(int from, int to) const;

  bool AllAttached() const;
  void Arrive(Gate gate);
  bool Passed(Gate gate, uint64_t times) const;

  void Ring(int rank) const;
  // Waits until `done()`, or until `stopped()` and the rank's own bell is rung.
  // False if stopped.
  bool Wait(const std::function<bool()>& done, const std::function<bool()>& stopped) const;
  // For callers with their own loop: the bell before looking, and the wait after.
  uint32_t Listen() const { return areas_[rank_].bell.load(); }
  void WaitForBell(uint32_t heard) const;

 private:
  struct Header {
    std::atomic<uint32_t> nranks;
    std::atomic<uint32_t> attached;
    std::atomic<uint64_t> arrivals[kGates];
  };

  Segment(int nranks, int rank);
  size_t Index(int from, int to) const { return static_cast<size_t>(from) * nranks_ + to; }
  ncclResult_t Map(const std::string& path);
  ncclResult_t Attach(const std::string& path);
  void RingAll() const;

  const int nranks_;
  const int rank_;
  size_t slot_bytes_;
  size_t slots_offset_;
  size_t channel_stride_;
  size_t channels_offset_;
  size_t size_;
  int file_ = -1;
  char* base_ = nullptr;
  Header* header_ = nullptr;
  RankArea* areas_ = nullptr;
  char* slots_ = nullptr;
  char* channels_ = nullptr;
};

}  // namespace rollcall::sim
