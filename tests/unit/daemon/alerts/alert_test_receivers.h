// SPDX-License-Identifier: Apache-2.0
// Receivers of alerts, those that fail or are slow as well, and an outbox, for the tests of alerts.
#pragma once

#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/alerts/alert_target.h"
#include "daemon/alerts/alerts.h"
#include "daemon/history/alert_outbox.h"
#include "daemon/history/history.h"

namespace rollcall {

// As in every program that runs a daemon: a command may end before it has read the alert.
inline const auto kFormerHandler = signal(SIGPIPE, SIG_IGN);

// A server that answers the first `failures` requests with this status.
class Receiver {
 public:
  explicit Receiver(int failures, int code = 503) {
    server_.Post("/hook", [=](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard<std::mutex> lock(mutex_);
      bodies_.push_back(request.body);
      keys_.push_back(request.get_header_value("Idempotency-Key"));
      if (static_cast<int>(bodies_.size()) <= failures) response.status = code;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Receiver() {
    // A server that is stopped before it listens would listen for ever.
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_, "/hook"); }
  std::vector<std::string> keys() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return keys_;
  }
  std::vector<std::string> bodies() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bodies_;
  }

 private:
  httplib::Server server_;
  std::mutex mutex_;
  std::vector<std::string> bodies_, keys_;
  int port_ = 0;
  std::thread thread_;
};

// Options of a sender with this one receiver, and with short pauses between its tries.
inline AlertOptions To(AlertKind kind, const std::string& where) {
  AlertOptions options;
  options.targets = {{kind, where}};
  options.retry = {5'000'000, 20'000'000};
  return options;
}

// An outbox in memory. Calls `saved` at once unless `responds` is false.
class FakeOutbox : public AlertOutbox {
 public:
  void Save(AlertRow alert, std::function<void()> saved) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      rows_[{alert.incident, alert.sequence}] = std::move(alert);
    }
    if (responds) saved();
  }
  void Mark(const std::string& incident, int32_t sequence, const std::string& receiver) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    AlertRow& row = rows_[{incident, sequence}];
    if (receiver.empty()) {
      row.sent = true;
    } else {
      row.receivers.insert(receiver);
    }
  }
  std::vector<AlertRow> rows() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<AlertRow> rows;
    for (const auto& [key, row] : rows_) rows.push_back(row);
    return rows;
  }
  // A new outbox is in place of this one.
  void Lose() {
    const std::lock_guard<std::mutex> lock(mutex_);
    rows_.clear();
  }
  std::atomic<bool> responds = true;

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, int32_t>, AlertRow> rows_;
};

// A listener that accepts connections and sends this text to each, byte by byte, until its end.
class Slow {
 public:
  explicit Slow(std::string text) : text_(std::move(text)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(fd_, 16);
    socklen_t size = sizeof(address);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port), "/");
    thread_ = std::thread([this] { Trickle(); });
  }
  ~Slow() {
    shutdown(fd_, SHUT_RDWR);
    stopping_ = true;
    thread_.join();
    close(fd_);
  }
  const std::string& url() const { return url_; }

 private:
  void Trickle() {
    std::vector<int> all;
    while (!stopping_) {
      pollfd ready = {fd_, POLLIN, 0};
      if (poll(&ready, 1, 20) > 0 && !stopping_) all.push_back(accept(fd_, nullptr, nullptr));
      const char next = text_.empty() ? 0 : text_[at_++ % text_.size()];
      for (const int fd : all) {
        if (!text_.empty()) (void)send(fd, &next, 1, MSG_NOSIGNAL);
      }
    }
    for (const int fd : all) close(fd);
  }

  const std::string text_;
  size_t at_ = 0;
  int fd_ = -1;
  std::string url_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rollcall
