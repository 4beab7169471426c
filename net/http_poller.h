// SPDX-License-Identifier: Apache-2.0
// Waits for sockets, and for a wake-up by another thread.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <vector>

#include "base/unique_fd.h"

namespace rollcall {

class HttpPoller {
 public:
  // What a socket is called here. The system gives the descriptor of a closed socket to the next
  // one, so an owner that closes sockets between two events gives them keys of its own, larger than
  // any descriptor.
  using Key = uint64_t;
  static Key KeyOf(int fd) { return static_cast<Key>(fd); }
  struct Ready {
    Key key = 0;
    uint32_t events = 0;
  };

  HttpPoller();

  // False if no descriptor was free.
  bool is_open() const { return epoll_.valid() && wake_.valid(); }
  void Add(int fd, uint32_t events) { Add(fd, KeyOf(fd), events); }
  void Add(int fd, Key key, uint32_t events) { Control(EPOLL_CTL_ADD, fd, key, events); }
  void Change(int fd, uint32_t events) { Change(fd, KeyOf(fd), events); }
  void Change(int fd, Key key, uint32_t events) { Control(EPOLL_CTL_MOD, fd, key, events); }
  void Remove(int fd) { Control(EPOLL_CTL_DEL, fd, KeyOf(fd), 0); }
  // Returns the sockets that are ready, none after Wake() or when the time is over.
  std::vector<Ready> Wait(int timeout_ms);
  void Wake();  // any thread may call it

 private:
  void Control(int operation, int fd, Key key, uint32_t events);

  const UniqueFd epoll_, wake_;
};

}  // namespace rollcall
