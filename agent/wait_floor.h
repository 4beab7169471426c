// SPDX-License-Identifier: Apache-2.0
// Since when waits count. After a pause of this agent or of the whole host (a stopped process, a
// suspend, a virtual machine that stood still) a job that waited and a job that was paused as well
// look the same: all waits begin anew.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace rollcall {

// One instant, on the clocks of this host.
struct HostInstant {
  int64_t steady_ns = 0;
  int64_t boot_ns = 0;     // goes on while the host is suspended
  uint64_t counter = 0;    // the CPU's; 0: not to be trusted
};

HostInstant ReadHostInstant();

// Pure: data in, data out.
class WaitFloor {
 public:
  // `tick_ns`: how often Update() will be called.
  explicit WaitFloor(int64_t tick_ns);

  // Instants come in order. Returns since when waits count; 0: there was no pause.
  int64_t Update(const HostInstant& now);

 private:
  bool WasPaused(const HostInstant& now) const;
  void MeasureCounter(const HostInstant& now);

  const int64_t pause_ns_;  // a gap longer than this
  HostInstant newest_, calm_;
  double ns_per_tick_ = 0;  // of the counter; 0: not known yet
  int64_t floor_ns_ = 0;
};

// Records the time with each tick, on a thread of its own, so that only a pause of the whole
// process counts, not a daemon that is slow to read. Thread-safe.
class PauseWatch {
 public:
  explicit PauseWatch(int64_t tick_ns);
  ~PauseWatch();
  PauseWatch(const PauseWatch&) = delete;
  PauseWatch& operator=(const PauseWatch&) = delete;

  // Since when waits count, as of now: the first caller after a pause learns of it.
  int64_t WaitsFrom();

 private:
  void Run();

  const int64_t tick_ns_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  WaitFloor floor_;
  std::thread thread_;
};

}  // namespace rollcall
