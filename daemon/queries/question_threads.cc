// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/question_threads.h"

#include <optional>
#include <utility>

#include "base/threads.h"

namespace rollcall {

QuestionThreads::~QuestionThreads() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    threads.swap(threads_);
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

// Makes one if all are busy. A task that waits for its turn is taken by the next that is free.
bool QuestionThreads::HasThread() {
  if (idle_ > waiting_ || threads_.size() >= most_) return true;
  std::optional<std::thread> thread = TryThread([this] { Serve(); });
  if (!thread.has_value()) return !threads_.empty();
  threads_.push_back(*std::move(thread));
  return true;
}

bool QuestionThreads::Post(const std::string& owner, Task task) {
  const MutexLock lock(mutex_);
  if (is_ending_ || !HasThread()) return false;
  turns_.Add(owner, std::move(task));
  ++waiting_;
  wake_.NotifyOne();
  return true;
}

void QuestionThreads::Serve() {
  std::optional<std::string> served;
  while (true) {
    std::optional<FairTurns<Task>::Turn> turn;
    {
      const MutexLock lock(mutex_);
      if (served.has_value()) turns_.End(*served);
      while (!(turn = turns_.Take()).has_value()) {
        if (is_ending_) return;
        ++idle_;
        wake_.Wait(mutex_);
        --idle_;
      }
      --waiting_;
    }
    turn->item();
    served = std::move(turn->owner);
  }
}

}  // namespace rollcall
