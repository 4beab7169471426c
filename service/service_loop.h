// SPDX-License-Identifier: Apache-2.0
// What the main thread of a service does while others work: waits for signals, reloads, and
// notifies systemd that the work goes on.
#pragma once

#include <signal.h>

#include <functional>
#include <string>

#include "service/service_manager.h"

namespace rollcall {

struct ServiceLoop {
  std::function<void()> reload;         // on SIGHUP
  std::function<bool()> is_alive;       // whether the main work progresses
  std::function<std::string()> status;  // for `systemctl status`
};

// SIGINT, SIGTERM and SIGHUP, blocked from now on. Call it before any thread starts.
sigset_t BlockServiceSignals();

// Reports that the service is ready, and returns on a request to stop.
void RunUntilStopped(const sigset_t& signals, const ServiceLoop& loop, ServiceManager* manager);

}  // namespace rollcall
