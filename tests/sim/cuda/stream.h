// SPDX-License-Identifier: Apache-2.0
// Streams of the simulated GPU: work runs in order, asynchronously, on a thread
// that starts with the first piece of work.
//
// Used by the three simulated libraries; lives in libcuda.so.1. Work that never
// ends (a collective whose peers do not come) keeps its stream and whoever
// waits for it, for ever, as on a GPU.
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

// A place in a stream's order: "everything up to here". Without a stream it is
// a place that everyone has passed.
struct Point {
  StreamRef stream;
  uint64_t ticket = 0;
};

bool Reached(const Point& point);
void WaitFor(const Point& point);

// What a capture has recorded, in the order of the calls. A launch replays it
// in that order, which every order of dependencies allows.
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
  const bool legacy;      // the NULL stream
  const unsigned flags;   // as given at creation; bit 0: does not wait for the NULL stream
  const int priority;
  GraphRef capture;       // guarded by the device's mutex
  bool owns_capture = false;

  bool blocking() const { return !legacy && (flags & 1) == 0; }

  // Appends work that begins after `after` has been reached.
  Point Push(Work work, std::vector<Point> after);
  Point Tail();
  bool Done(uint64_t ticket);
  void WaitUntil(uint64_t ticket);
  // Blocks while as much work is waiting as a GPU's queue holds.
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

// Puts work on a stream: behind what the NULL stream's rules put before it, or
// into the capture that the stream is in. A captured piece has no place.
Point Enqueue(const StreamRef& stream, Work work, std::vector<Point> after = {});

// A place behind all work that is on the stream now, by the NULL stream's rules.
Point TailOf(const StreamRef& stream);

}  // namespace rollcall::sim
