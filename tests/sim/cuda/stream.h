// SPDX-License-Identifier: Apache-2.0
// Streams of the simulated GPU: work runs in order, asynchronously, on a thread
// that starts with the first piece of work.
//
// The three simulated libraries use this code, which is in libcuda.so.1. Work that
// never ends (a collective whose peers do not come) blocks its stream and every
// thread that waits for the stream for ever, as on a GPU.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace rollcall::sim {

class Stream;
using StreamRef = std::shared_ptr<Stream>;
using Work = std::function<void()>;

// A place in a stream's order: "all work up to here". A place without a stream has always been
// reached.
struct Point {
  StreamRef stream;
  uint64_t ticket = 0;
};

bool Reached(const Point& point);
void WaitFor(const Point& point);

// The work that a capture has recorded, in the order of the calls. A launch replays the work in
// this order, which satisfies all dependencies.
struct Graph {
  uint64_t capture_id = 0;  // of the capture that made it
  std::vector<Work> nodes;
  bool broken = false;  // something not allowed in a capture was called
};
using GraphRef = std::shared_ptr<Graph>;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(int device, bool legacy, unsigned flags, int priority)
      : device(device), legacy(legacy), flags(flags), priority(priority) {}

  const int device;
  const bool legacy;     // the NULL stream
  const unsigned flags;  // as given at creation; bit 0: does not wait for the NULL stream
  const int priority;
  GraphRef capture;  // guarded by the device's mutex
  bool owns_capture = false;

  bool blocking() const { return !legacy && (flags & 1) == 0; }

  // Appends work that begins after `after` has been reached.
  Point Push(Work work, std::vector<Point> after);
  Point Tail();
  bool Done(uint64_t ticket);
  void WaitUntil(uint64_t ticket);
  // Blocks while the queue is full, as a GPU's queue does.
  void WaitForRoom();
  // Lets the thread end once all work is done.
  void Close();

 private:
  struct Task {
    Work work;
    std::vector<Point> after;
  };
  void Run();
  bool Next(Task* task);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint64_t issued_ = 0;
  uint64_t done_ = 0;
  bool running_ = false;
  bool closed_ = false;
};

// Puts work on a stream, after the work that the NULL stream's rules put before it. If the stream
// is in a capture, adds the work to the capture. Captured work has no place.
Point Enqueue(const StreamRef& stream, Work work, std::vector<Point> after = {});

// The place after all work that is now on the stream, by the NULL stream's rules.
Point StreamTail(const StreamRef& stream);

}  // namespace rollcall::sim
