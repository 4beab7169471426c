// SPDX-License-Identifier: Apache-2.0
// Writes text to stderr on a thread of its own. While stderr has no reader (a full pipe, a stopped
// terminal), `rollcall run` must still pass signals on, end a hung job, and return the exit code
// of the job.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "base/worker.h"

namespace rollcall {

// Thread-safe. Create it after the signals are blocked: its thread must not receive them.
class StderrQueue {
 public:
  StderrQueue();
  ~StderrQueue();  // drops what is not written yet
  StderrQueue(const StderrQueue&) = delete;
  StderrQueue& operator=(const StderrQueue&) = delete;

  // Returns at once. Drops the text if a mebibyte waits already.
  void Write(const std::string& text);

  // Waits until all text is written. False if it was not read by `deadline`.
  bool Flush(SteadyTime deadline);

 private:
  // Bytes that wait, shared with the thread.
  const std::shared_ptr<std::atomic<size_t>> waiting_ = std::make_shared<std::atomic<size_t>>(0);
  Worker worker_;
};

// From now on spdlog writes to the queue, with the same form of lines.
void LogTo(std::shared_ptr<StderrQueue> queue);

}  // namespace rollcall
