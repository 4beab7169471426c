// SPDX-License-Identifier: Apache-2.0
#include "net/http_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/http_connection.h"

namespace rollcall {

void HttpListener::Start() {
  // httplib asks for a queue of five.
  listen(fd_.get(), kListenBacklog);
  fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  poller_->Add(fd_.get(), EPOLLIN);
}

bool HttpListener::HasClient() const {
  pollfd listener = {fd_.get(), POLLIN, 0};
  return poll(&listener, 1, 0) == 1 && (listener.revents & POLLIN) != 0;
}

HttpListener::Accepted HttpListener::Accept() {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  const int fd =
      accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return {-1, "", errno == EMFILE || errno == ENFILE};
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return {fd, FormatPeer(peer), false};
}

void HttpListener::Pause() {
  is_paused_ = true;
  poller_->Change(fd_.get(), 0);
}

void HttpListener::Resume() {
  if (!is_paused_) return;
  is_paused_ = false;
  poller_->Change(fd_.get(), EPOLLIN);
}

}  // namespace rollcall
