// SPDX-License-Identifier: Apache-2.0
#include "service/service_manager.h"

#include <gtest/gtest.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rollcall {
namespace {

// systemd's end of the socket.
class Systemd {
 public:
  explicit Systemd(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~Systemd() { close(fd_); }
  // The next message, or empty.
  std::string Next() {
    char text[1000];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  const int fd_;
};

std::string SocketName() { return "@rollcall-test-" + std::to_string(getpid()); }

TEST(ServiceManagerTest, SaysWhatHappensInSystemdsWords) {
  Systemd systemd(SocketName());
  ServiceManager manager(SocketName(), 0);
  manager.SayReady("two\nlines");
  EXPECT_EQ(systemd.Next(), "READY=1\nSTATUS=two lines");
  manager.SayReloading();
  EXPECT_EQ(systemd.Next().rfind("RELOADING=1\nMONOTONIC_USEC=", 0), 0u);
  manager.SayAlive();
  EXPECT_EQ(systemd.Next(), "WATCHDOG=1");
  manager.SayStopping();
  EXPECT_EQ(systemd.Next(), "STOPPING=1");
}

TEST(ServiceManagerTest, RepeatsNoStatus) {
  Systemd systemd(SocketName());
  ServiceManager manager(SocketName(), 0);
  manager.SayStatus("a");
  manager.SayStatus("a");
  manager.SayStatus("b");
  EXPECT_EQ(systemd.Next(), "STATUS=a");
  EXPECT_EQ(systemd.Next(), "STATUS=b");
  EXPECT_EQ(systemd.Next(), "");
}

TEST(ServiceManagerTest, SendsNothingAndIsHarmlessWithoutSystemd) {
  ServiceManager none("", 0), gone("/nowhere/notify", 0), longer(std::string(200, 'a'), 0);
  for (ServiceManager* manager : {&none, &gone, &longer}) manager->SayReady("a");
  EXPECT_FALSE(none.is_there());
}

TEST(ServiceManagerTest, LearnsFromTheEnvironmentAndLeavesNothingToChildren) {
  setenv("NOTIFY_SOCKET", "/run/notify", 1);
  setenv("WATCHDOG_USEC", "60000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  const ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_TRUE(manager.is_there());
  EXPECT_EQ(manager.watchdog_ns(), 60'000'000'000);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(getenv(name), nullptr) << name;
  }
}

TEST(ServiceManagerTest, CountsOnlyTheWatchdogOfTheProcess) {
  setenv("NOTIFY_SOCKET", "/run/notify", 1);
  setenv("WATCHDOG_USEC", "60000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog_ns(), 0);
  setenv("WATCHDOG_USEC", "60000000", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog_ns(), 0);
  setenv("NOTIFY_SOCKET", "/run/notify", 1);
  setenv("WATCHDOG_USEC", "soon", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog_ns(), 0);
}

}  // namespace
}  // namespace rollcall
