// SPDX-License-Identifier: Apache-2.0
// One rank's end of a communicator.
//
// A table holds the handles of living communicators, so a call with a destroyed
// handle returns ncclInvalidArgument and does not crash. A thread that waits inside
// holds a reference. Abort makes all these threads leave.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/sim/cuda/stream.h"
#include "tests/sim/nccl/call.h"
#include "tests/sim/nccl/proxy.h"
#include "tests/sim/nccl/segment.h"

namespace rollcall::sim {

class Comm;
using CommRef = std::shared_ptr<Comm>;

class Comm : public std::enable_shared_from_this<Comm> {
 public:
  Comm(int nranks, int rank, int device, bool blocking)
      : nranks(nranks), rank(rank), device(device), blocking(blocking) {}

  // Makes a communicator that has a handle but no peers yet.
  static CommRef Make(int nranks, int rank, int device, bool blocking);
  static CommRef Find(ncclComm_t handle);
  ncclComm_t handle() { return reinterpret_cast<ncclComm_t>(this); }
  void Forget();

  // Meets the other ranks under `name`. Waits for them without a limit.
  ncclResult_t Join(const std::string& name);
  // Waits until a non-blocking communicator has finished its earlier calls.
  ncclResult_t EnsureReady();
  void SetState(ncclResult_t state);
  ncclResult_t state();
  bool IsNamed(const std::string& other);

  // Waits for all ranks at a gate. False if aborted.
  bool Meet(Gate gate);
  // Arrives at the gate without waiting. Returns how often this rank has arrived.
  uint64_t ArriveAt(Gate gate);

  // Ends all work on the device and all connecting, for abort and revoke. The communicator stays
  // usable for management calls unless `aborting`.
  void Stop(bool aborting);
  // Waits until all launched work has run. False if aborted.
  bool Drain();
  void BeginWork();
  void EndWork();
  // Waits until no stream is inside this communicator.
  void WaitUntilIdle();
  // Whether this process has no other rank of the communicator that has still to leave it. Called
  // once, by a rank that leaves.
  bool LeavesLast();

  std::shared_ptr<const PreMultiply> FindReduction(ncclRedOp_t op);
  ncclRedOp_t AddReduction(PreMultiply reduction);
  bool RemoveReduction(ncclRedOp_t op);

  const int nranks;
  const int rank;
  const int device;
  const bool blocking;
  std::string name;
  std::unique_ptr<Segment> segment;  // set once, by Join()

  std::atomic<bool> aborted{false};
  std::atomic<bool> stopped{false};  // device work ends early
  std::atomic<bool> revoked{false};
  std::atomic<bool> finalized{false};
  bool leaving = false;  // guarded by the mutex of the table

  std::mutex launch_mutex;                    // guards the next four
  Point last;                                 // where the last launch ends
  bool connected = false;                     // all ranks have come to their first collective
  std::vector<bool> sends_to, receives_from;  // peers met for the first time
  int children = 0;                           // splits so far
  int shrinks = 0;
  void* profiler_context = nullptr;  // set once, by Join()

  std::mutex run_mutex;          // held while a stream is in here; guards the next three
  uint64_t rounds = 0;           // of collectives, equal on all ranks
  uint64_t network_calls = 0;    // collectives that have gone over the simulated network
  std::unique_ptr<Proxy> proxy;  // from the first of these on

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ncclResult_t state_ = ncclSuccess;
  int work_ = 0;
  uint64_t arrivals_[kGates] = {};
  std::vector<std::shared_ptr<const PreMultiply>> reductions_;
};

// 128 bits of `text`, as hexadecimal digits.
std::string HashName(const std::string& text);

}  // namespace rollcall::sim
