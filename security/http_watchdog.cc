// SPDX-License-Identifier: Apache-2.0
#include "security/http_watchdog.h"

#include <httplib.h>

#include <utility>

namespace rollcall {
namespace {

constexpr std::chrono::milliseconds kLookEvery{10};

}  // namespace

HttpWatchdog::HttpWatchdog(httplib::Client* client, HttpAnswerLimits limits,
                           std::function<bool()> is_cancelled)
    : client_(client), limits_(limits), is_cancelled_(std::move(is_cancelled)) {
  client_->set_socket_options([this](socket_t socket) { socket_ = socket; });
  thread_ = std::thread([this] { Watch(); });
}

HttpWatchdog::~HttpWatchdog() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  client_->set_socket_options(nullptr);
}

void HttpWatchdog::Watch() {
  const auto deadline = std::chrono::steady_clock::now() + limits_.within;
  const MutexLock lock(mutex_);
  while (true) {
    const auto next_look = std::chrono::steady_clock::now() + kLookEvery;
    while (!ended_ && changed_.WaitUntil(mutex_, next_look)) {
    }
    if (ended_) return;
    const int socket = socket_;
    const bool is_late = std::chrono::steady_clock::now() > deadline;
    const bool is_too_long = socket >= 0 && ReceivedBytes(socket) > limits_.bytes;
    if (is_late || is_too_long || (is_cancelled_ && is_cancelled_())) client_->stop();
  }
}

}  // namespace rollcall
