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
  worker_.Repeat([this, deadline = std::chrono::steady_clock::now() + limits_.within] {
    Watch(deadline);
    return kLookEvery;
  });
}

HttpWatchdog::~HttpWatchdog() {
  worker_.Finish(SteadyTime::max());
  client_->set_socket_options(nullptr);
}

void HttpWatchdog::Watch(SteadyTime deadline) {
  const int socket = socket_;
  const bool is_late = std::chrono::steady_clock::now() > deadline;
  const bool is_too_long = socket >= 0 && ReceivedBytes(socket) > limits_.bytes;
  if (is_late || is_too_long || (is_cancelled_ && is_cancelled_())) client_->stop();
}

}  // namespace rollcall
