// SPDX-License-Identifier: Apache-2.0
// A server that speaks to clients as NCCL's RAS does, or as a hostile one would, on a real socket
// of loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/outside/tcp_table.h"
#include "base/unique_fd.h"

namespace rollcall {

// One line that the client has sent, without its end; empty if it has closed the connection.
inline std::string LineOfClient(int fd) {
  std::string line;
  char byte = 0;
  while (recv(fd, &byte, 1, 0) == 1) {
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

inline bool Say(int fd, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

class RasServer {
 public:
  // `serve` has a connection, one after the other, which it need not close.
  explicit RasServer(std::function<void(int)> serve) : serve_(std::move(serve)) {
    listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const int yes = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
    bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_.get(), 16);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    end_.address[10] = end_.address[11] = 0xff;
    std::memcpy(&end_.address[12], &address.sin_addr, sizeof(address.sin_addr));
    end_.port = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~RasServer() {
    stopping_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  RasServer(const RasServer&) = delete;
  RasServer& operator=(const RasServer&) = delete;

  const TcpEnd& end() const { return end_; }
  int connections() const { return connections_; }
  bool stopping() const { return stopping_; }

 private:
  void Run() {
    for (;;) {
      UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      ++connections_;
      serve_(client.get());
    }
  }

  const std::function<void(int)> serve_;
  UniqueFd listener_;
  TcpEnd end_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// What a release of NCCL answers.
struct RasRelease {
  bool knows_json = false;  // since 2.28.7
  std::string text, json;   // its answer in each form
};

// As RAS: it answers each setting, and the status by a text after which it closes.
inline std::function<void(int)> AsNccl(const RasRelease& release,
                                       std::vector<std::string>* heard = nullptr) {
  return [release, heard](int fd) {
    bool json = false;
    for (std::string line = LineOfClient(fd); !line.empty(); line = LineOfClient(fd)) {
      if (heard != nullptr) heard->push_back(line);
      if (line.rfind("CLIENT PROTOCOL ", 0) == 0) {
        Say(fd, "SERVER PROTOCOL 2\n");
      } else if (line.rfind("TIMEOUT ", 0) == 0) {
        Say(fd, "OK\n");
      } else if (line == "SET FORMAT json" && release.knows_json) {
        json = true;
        Say(fd, "OK\n");
      } else if (line == "VERBOSE STATUS") {
        Say(fd, json ? release.json : release.text);
        return;
      } else {
        Say(fd, "ERROR: Unknown command " + line + "\n");
      }
    }
  };
}

}  // namespace rollcall
