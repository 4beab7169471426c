// SPDX-License-Identifier: Apache-2.0
// Tells systemd how the service is: started, reloading, stopping, alive. The protocol is one
// datagram to the socket in NOTIFY_SOCKET, and documented as stable and free to implement
// (sd_notify(3)). Debian's libsystemd has no archive, which the static programs would need.
//
// Without NOTIFY_SOCKET nothing is sent. One thread calls it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace rollcall {

class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment:
  // children must not speak for this process. Call it before any thread starts.
  static ServiceManager FromEnvironment();
  // `socket`: a path, or "@NAME" of an abstract one, or empty.
  ServiceManager(std::string socket, int64_t watchdog_ns)
      : socket_(std::move(socket)), watchdog_ns_(watchdog_ns) {}

  bool is_there() const { return !socket_.empty(); }
  // SayAlive() is due within this time, again and again; 0 if no manager waits for it.
  int64_t watchdog_ns() const { return watchdog_ns_; }

  void SayReady(const std::string& status);
  void SayReloading();
  void SayStopping();
  void SayAlive();
  // One line for `systemctl status`. Sent only if it differs from the last one.
  void SayStatus(const std::string& status);

 private:
  void Send(const std::string& message) const;

  const std::string socket_;
  const int64_t watchdog_ns_;
  std::string status_;
};

}  // namespace rollcall
