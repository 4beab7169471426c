// SPDX-License-Identifier: Apache-2.0
#include "service/service_loop.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kStatusEvery = 10 * kSecond;
// Signs of life in the time in which systemd wants one: one may be late.
constexpr int64_t kSigns = 3;

timespec ToTimespec(int64_t ns) { return {ns / kSecond, static_cast<long>(ns % kSecond)}; }

int64_t Interval(const ServiceManager& manager) {
  if (manager.watchdog_ns() == 0) return kStatusEvery;
  return std::clamp<int64_t>(manager.watchdog_ns() / kSigns, kSecond / 100, kStatusEvery);
}

// Says it once for each time that the work stands still.
void SayLife(const ServiceLoop& loop, ServiceManager* manager, bool* was_alive) {
  const bool is_alive = loop.is_alive();
  if (is_alive) {
    if (manager->watchdog_ns() != 0) manager->SayAlive();
    manager->SayStatus(loop.status());
  } else if (*was_alive) {
    spdlog::error("the main loop stands still; systemd restarts this service unless it goes on");
    manager->SayStatus("the main loop stands still");
  }
  *was_alive = is_alive;
}

}  // namespace

sigset_t BlockServiceSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void RunUntilStopped(const sigset_t& signals, const ServiceLoop& loop, ServiceManager* manager) {
  manager->SayReady(loop.status());
  const timespec interval = ToTimespec(Interval(*manager));
  bool was_alive = true;
  while (true) {
    const int signal = manager->is_there() ? sigtimedwait(&signals, nullptr, &interval)
                                           : sigwaitinfo(&signals, nullptr);
    if (signal == SIGHUP) {
      manager->SayReloading();
      loop.reload();
      manager->SayReady(loop.status());
    } else if (signal == SIGINT || signal == SIGTERM) {
      break;
    } else if (manager->is_there()) {
      SayLife(loop, manager, &was_alive);
    }
  }
  manager->SayStopping();
}

}  // namespace rollcall
