// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cuda/stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <thread>
#include <utility>

#include "tests/sim/cuda/device.h"

namespace rollcall::sim {
namespace {

uint64_t QueueDepth() {
  static const uint64_t depth = [] {
    const char* value = getenv("ROLLCALL_SIM_QUEUE_DEPTH");
    const long parsed = value == nullptr ? 0 : atol(value);
    return static_cast<uint64_t>(parsed > 0 ? parsed : 1024);
  }();
  return depth;
}

// Starts a thread that takes no signal: only the application's threads may run the application's
// handlers.
void StartQuietThread(Work body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([body = std::move(body)] {
    pthread_setname_np(pthread_self(), "sim-stream");
    body();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The places that the NULL stream's rules put before new work on `stream`. The caller holds the
// device's mutex.
void AddImplicitOrder(Device& device, const StreamRef& stream, std::vector<Point>* after) {
  if (stream->legacy) {
    for (const StreamRef& other : device.streams) {
      if (other->blocking() && other->capture == nullptr) after->push_back(other->Tail());
    }
  } else if (stream->blocking()) {
    after->push_back(device.legacy->Tail());
  }
}

}  // namespace

bool Reached(const Point& point) {
  return point.stream == nullptr || point.stream->Done(point.ticket);
}

void WaitFor(const Point& point) {
  if (point.stream != nullptr) point.stream->WaitUntil(point.ticket);
}

Point Stream::Push(Work work, std::vector<Point> after) {
  std::lock_guard lock(mutex_);
  tasks_.push_back({std::move(work), std::move(after)});
  if (!running_) {
    running_ = true;
    StartQuietThread([self = shared_from_this()] { self->Run(); });
  }
  changed_.notify_all();
  return {shared_from_this(), ++issued_};
}

Point Stream::Tail() {
  std::lock_guard lock(mutex_);
  if (done_ == issued_) return {};
  return {shared_from_this(), issued_};
}

bool Stream::Done(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  return done_ >= ticket;
}

void Stream::WaitUntil(uint64_t ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= ticket; });
}

void Stream::WaitForRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.size() < QueueDepth(); });
}

void Stream::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Stream::Next(Task* task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !tasks_.empty() || closed_; });
  if (tasks_.empty()) return false;
  *task = std::move(tasks_.front());
  tasks_.pop_front();
  return true;
}

void Stream::Run() {
  Task task;
  while (Next(&task)) {
    for (const Point& point : task.after) WaitFor(point);
    task.work();
    task = {};  // what the work holds on to goes before others see it done
    std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

Point Enqueue(const StreamRef& stream, Work work, std::vector<Point> after) {
  stream->WaitForRoom();
  Device& device = DeviceAt(stream->device);
  std::lock_guard lock(device.mutex);
  if (stream->capture != nullptr) {
    stream->capture->nodes.push_back(std::move(work));
    return {};
  }
  AddImplicitOrder(device, stream, &after);
  return stream->Push(std::move(work), std::move(after));
}

Point StreamTail(const StreamRef& stream) {
  if (stream->legacy) return Enqueue(stream, [] {});
  return stream->Tail();
}

}  // namespace rollcall::sim
