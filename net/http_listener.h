// SPDX-License-Identifier: Apache-2.0
// A listening socket, of the page or of gRPC. The thread that accepts its connections owns it.
#pragma once

#include <string>

#include "net/http_poller.h"

namespace rollcall {

// Connections that are not accepted yet: the agents of a fleet return at once. The system's limit
// (net.core.somaxconn) is 4,096.
inline constexpr int kListenBacklog = 4096;

class HttpListener {
 public:
  struct Accepted {
    int fd = -1;  // does not block; -1: there is none
    std::string peer;
    bool lacks_descriptor = false;  // one waits, but this process may open no more files
  };

  // `fd` is a listening socket. Takes ownership.
  HttpListener(int fd, HttpPoller* poller) : fd_(fd), poller_(poller) {}
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  void Start();
  // Whether a client waits to be accepted.
  bool HasClient() const;
  Accepted Accept();
  // While others use all descriptors, the poller would report the socket again and again.
  void Pause();
  void Resume();
  // Afterwards clients are refused at once; those that wait to be accepted, too.
  void Close();
  int fd() const { return fd_; }

 private:
  int fd_;  // -1: closed
  HttpPoller* const poller_;
  bool is_paused_ = false;
};

}  // namespace rollcall
