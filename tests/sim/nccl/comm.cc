// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/comm.h"

#include <stdio.h>

#include "tests/sim/made_once.h"
#include "tests/sim/nccl/device_turn.h"
#include "tests/sim/nccl/profiler.h"

namespace rollcall::sim {
namespace {

struct Living {
  std::mutex mutex;
  std::map<const void*, CommRef> all;
};

Living& LivingComms() { return MadeOnce<Living>(); }

uint64_t Fnv(const std::string& text, uint64_t hash) {
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string HashName(const std::string& text) {
  char name[40];
  snprintf(name, sizeof(name), "%016llx%016llx",
           static_cast<unsigned long long>(Fnv(text, 0xcbf29ce484222325)),
           static_cast<unsigned long long>(Fnv(text, 0x9ae16a3b2f90404f)));
  return name;
}

CommRef Comm::Make(int nranks, int rank, int device, bool blocking) {
  auto comm = std::make_shared<Comm>(nranks, rank, device, blocking);
  comm->sends_to.resize(nranks);
  comm->receives_from.resize(nranks);
  std::lock_guard lock(LivingComms().mutex);
  LivingComms().all[comm.get()] = comm;
  return comm;
}

CommRef Comm::Find(ncclComm_t handle) {
  std::lock_guard lock(LivingComms().mutex);
  const auto found = LivingComms().all.find(handle);
  return found == LivingComms().all.end() ? nullptr : found->second;
}

void Comm::Forget() {
  std::lock_guard lock(LivingComms().mutex);
  LivingComms().all.erase(this);
}

ncclResult_t Comm::Join(const std::string& segment_name) {
  std::unique_ptr<Segment> opened;
  const ncclResult_t result = Segment::Open(segment_name, nranks, rank, &opened);
  if (result != ncclSuccess) return result;
  {
    std::lock_guard lock(mutex_);
    name = segment_name;
    segment = std::move(opened);
  }
  segment->Wait([this] { return segment->AllAttached(); }, [this] { return aborted.load(); });
  if (!aborted) ProfilerInit(this);
  return ncclSuccess;
}

ncclResult_t Comm::EnsureReady() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ != ncclInProgress || aborted; });
  return state_ == ncclInProgress ? ncclInvalidUsage : state_;
}

void Comm::SetState(ncclResult_t state) {
  std::lock_guard lock(mutex_);
  state_ = state;
  changed_.notify_all();
}

ncclResult_t Comm::state() {
  std::lock_guard lock(mutex_);
  return state_;
}

bool Comm::IsNamed(const std::string& other) {
  std::lock_guard lock(mutex_);
  return name == other;
}

bool Comm::LeavesLast() {
  std::lock_guard lock(LivingComms().mutex);
  leaving = true;
  for (const auto& [handle, comm] : LivingComms().all) {
    if (!comm->leaving && comm->IsNamed(name)) return false;
  }
  return true;
}

uint64_t Comm::ArriveAt(Gate gate) {
  std::lock_guard lock(mutex_);
  segment->Arrive(gate);
  return ++arrivals_[gate];
}

bool Comm::Meet(Gate gate) {
  const uint64_t times = ArriveAt(gate);
  return segment->Wait([&] { return segment->Passed(gate, times); },
                       [&] { return gate == kDeviceGate ? stopped.load() : aborted.load(); });
}

void Comm::Stop(bool aborting) {
  stopped = true;
  if (aborting) aborted = true;
  WakeDeviceTurns();
  std::lock_guard lock(mutex_);
  if (segment != nullptr) segment->Ring(rank);
  changed_.notify_all();
}

bool Comm::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_ == 0 || aborted; });
  return !aborted;
}

void Comm::BeginWork() {
  std::lock_guard lock(mutex_);
  ++work_;
}

void Comm::EndWork() {
  std::lock_guard lock(mutex_);
  --work_;
  changed_.notify_all();
}

void Comm::WaitUntilIdle() { std::lock_guard lock(run_mutex); }

std::shared_ptr<const PreMultiply> Comm::FindReduction(ncclRedOp_t op) {
  std::lock_guard lock(mutex_);
  const size_t index = static_cast<size_t>(op) - ncclNumOps;
  return index < reductions_.size() ? reductions_[index] : nullptr;
}

ncclRedOp_t Comm::AddReduction(PreMultiply reduction) {
  std::lock_guard lock(mutex_);
  reductions_.push_back(std::make_shared<const PreMultiply>(reduction));
  return static_cast<ncclRedOp_t>(ncclNumOps + reductions_.size() - 1);
}

bool Comm::RemoveReduction(ncclRedOp_t op) {
  std::lock_guard lock(mutex_);
  const size_t index = static_cast<size_t>(op) - ncclNumOps;
  if (index >= reductions_.size() || reductions_[index] == nullptr) return false;
  reductions_[index] = nullptr;
  return true;
}

}  // namespace rollcall::sim
