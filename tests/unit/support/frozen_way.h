// SPDX-License-Identifier: Apache-2.0
// A port of this host that leads to another one, until the way freezes: then connections stay open,
// and no byte passes, as where a network is cut or a daemon is paused.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {

class FrozenWay {
 public:
  explicit FrozenWay(int to_port) : to_port_(to_port), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~FrozenWay() {
    stopping_ = true;
    thread_.join();
    close(listener_);
    for (const auto& [from, to] : ways_) close(from);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  void Freeze() { is_frozen_ = true; }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void Accept() {
    const int from = accept(listener_, nullptr, nullptr);
    const int to = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(to_port_);
    connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    ways_.emplace_back(from, to);
    ways_.emplace_back(to, from);
  }

  static void Pass(int from, int to) {
    char bytes[65536];
    const ssize_t count = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count == 0) shutdown(to, SHUT_WR);
    if (count > 0) send(to, bytes, static_cast<size_t>(count), MSG_NOSIGNAL);
  }

  void Run() {
    while (!stopping_) {
      if (is_frozen_) {
        usleep(10'000);
        continue;
      }
      std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
      for (const auto& [from, to] : ways_) ready.push_back({from, POLLIN, 0});
      if (poll(ready.data(), ready.size(), 10) <= 0) continue;
      for (size_t i = 0; i < ways_.size() && i + 1 < ready.size(); ++i) {
        if (ready[i + 1].revents != 0) Pass(ways_[i].first, ways_[i].second);
      }
      if (ready[0].revents != 0) Accept();
    }
  }

  const int to_port_;
  const int listener_;
  int port_ = 0;
  std::vector<std::pair<int, int>> ways_;  // used by the thread only
  std::atomic<bool> is_frozen_{false}, stopping_{false};
  std::thread thread_;
};

}  // namespace rollcall
