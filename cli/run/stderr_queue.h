// SPDX-License-Identifier: Apache-2.0
// Writes text to stderr on a thread of its own. While nobody reads stderr (a full pipe, a stopped
// terminal), `rollcall run` must still pass signals on, end a hung job, and return the exit code
// of the job.
#pragma once

#include <memory>
#include <string>

#include "base/loose_thread.h"
#include "base/mutex.h"

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

  // Waits until all text is written. False: somebody does not read it by `deadline`.
  bool Flush(SteadyTime deadline);

 private:
  struct State {
    Mutex mutex;
    Condition changed;
    std::string waiting ABSL_GUARDED_BY(mutex);
    bool writes ABSL_GUARDED_BY(mutex) = false;  // the thread is in write()
    bool ending ABSL_GUARDED_BY(mutex) = false;
  };
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  LooseThread thread_;
};

// From now on spdlog writes to the queue, with the same form of lines.
void LogTo(std::shared_ptr<StderrQueue> queue);

}  // namespace rollcall
