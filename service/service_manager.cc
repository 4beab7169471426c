// SPDX-License-Identifier: Apache-2.0
#include "service/service_manager.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

// The variable's value, which is gone afterwards.
std::string Take(const char* name) {
  const char* value = getenv(name);
  const std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

std::string OneLine(const std::string& text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  const std::string socket = Take("NOTIFY_SOCKET");
  const std::string pid = Take("WATCHDOG_PID");
  int64_t watchdog_us = 0;
  if (!absl::SimpleAtoi(Take("WATCHDOG_USEC"), &watchdog_us) || watchdog_us < 0) watchdog_us = 0;
  if (!pid.empty() && pid != absl::StrCat(getpid())) watchdog_us = 0;
  return {socket, socket.empty() ? 0 : watchdog_us * (kSecond / 1'000'000)};
}

void ServiceManager::SayReady(const std::string& status) {
  status_ = status;
  Send(absl::StrCat("READY=1\nSTATUS=", OneLine(status)));
}

void ServiceManager::SayReloading() {
  Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", MonotonicNs() / 1000));
}

void ServiceManager::SayStopping() { Send("STOPPING=1"); }

void ServiceManager::SayAlive() { Send("WATCHDOG=1"); }

void ServiceManager::SayStatus(const std::string& status) {
  if (status == status_) return;
  status_ = status;
  Send(absl::StrCat("STATUS=", OneLine(status)));
}

// A message that cannot be sent is lost, as in libsystemd: the service must not end because of it.
void ServiceManager::Send(const std::string& message) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_.size() < 2 || socket_.size() >= sizeof(address.sun_path)) return;
  memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  static_cast<void>(sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&address), size));
}

}  // namespace rollcall
