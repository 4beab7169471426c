// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/device_turn.h"

#include <set>

#include "tests/sim/made_once.h"
#include "tests/sim/nccl/options.h"

namespace rollcall::sim {
namespace {

struct Turns {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<int> busy;  // devices
};

Turns& AllTurns() { return MadeOnce<Turns>(); }

}  // namespace

DeviceTurn::DeviceTurn(const Comm& comm) : device_(comm.device) {
  if (!GetOptions().serialize) return;
  Turns& turns = AllTurns();
  std::unique_lock lock(turns.mutex);
  turns.changed.wait(lock, [&] { return comm.stopped || turns.busy.count(device_) == 0; });
  if (!comm.stopped) taken_ = turns.busy.insert(device_).second;
}

DeviceTurn::~DeviceTurn() {
  if (!taken_) return;
  std::lock_guard lock(AllTurns().mutex);
  AllTurns().busy.erase(device_);
  AllTurns().changed.notify_all();
}

void WakeDeviceTurns() {
  std::lock_guard lock(AllTurns().mutex);
  AllTurns().changed.notify_all();
}

}  // namespace rollcall::sim
