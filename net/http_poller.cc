// SPDX-License-Identifier: Apache-2.0
#include "net/http_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace rollcall {
namespace {

// More than the usual limit of connections: then all of them have their turn each time.
constexpr int kEventsAtOnce = 512;

}  // namespace

HttpPoller::HttpPoller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (is_open()) Add(wake_.get(), EPOLLIN);
}

std::vector<HttpPoller::Ready> HttpPoller::Wait(int timeout_ms) {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, timeout_ms);
  std::vector<Ready> ready;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 != KeyOf(wake_.get())) {
      ready.push_back({events[i].data.u64, events[i].events});
      continue;
    }
    uint64_t ignored;
    while (read(wake_.get(), &ignored, sizeof(ignored)) > 0) {
    }
  }
  return ready;
}

void HttpPoller::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

void HttpPoller::Control(int operation, int fd, Key key, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = key;
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

}  // namespace rollcall
