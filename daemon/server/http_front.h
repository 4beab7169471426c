// SPDX-License-Identifier: Apache-2.0
// The connections of the page's server.
//
// One thread reads requests and writes answers of all of them, and a few threads make the answers.
// So a slow client costs a descriptor and never a thread: there is a deadline for a request, for an
// idle connection and for taking an answer, none of which begins anew with a byte that trickles in.
// Where connections are used up, the one that has kept us waiting longest makes room. /healthz is
// answered by the first thread, whatever the others do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rollcall {

struct HttpLimits {
  int connections = 256;
  int threads = 16;
  int viewers = 100;                      // of event streams
  int64_t request_ns = 10'000'000'000;    // until a request is whole
  int64_t idle_ns = 15'000'000'000;       // between two requests
  int64_t stalled_ns = 10'000'000'000;    // without a byte of an answer taken
  int64_t answer_ns = 120'000'000'000;    // until all of it is taken
  size_t unsent_bytes = size_t{256} << 20;  // of all answers that wait for clients
};

class HttpFront {
 public:
  struct Reply {
    std::string bytes;
    bool close = false;      // the connection, after it
    bool is_stream = false;  // the head of an event stream, which tells of changes of `job`
    std::string job;
  };
  struct Counts {
    uint64_t connections = 0;  // now
    uint64_t dropped = 0;      // closed to make room, or as too slow
  };
  // The answer to one whole request. Called on any of the threads.
  using Answer = std::function<Reply(const std::string& request)>;
  // Changes when there is something to tell of the job. Called on a thread for event streams.
  using Version = std::function<uint64_t(const std::string& job)>;

  // `listener`: a socket that listens; taken over.
  HttpFront(int listener, const HttpLimits& limits, Answer answer, Version version);
  ~HttpFront();  // stops
  HttpFront(const HttpFront&) = delete;
  HttpFront& operator=(const HttpFront&) = delete;

  // False: file descriptors are used up.
  bool Start();
  // Closes all connections, and waits for the answers that are being made.
  void Stop();

  bool HasRoomForViewer() const;
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
