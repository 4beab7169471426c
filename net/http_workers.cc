// SPDX-License-Identifier: Apache-2.0
#include "net/http_workers.h"

#include <utility>

namespace rollcall {

HttpWorkers::HttpWorkers(int threads, HttpAnswer answer, Deliver deliver)
    : count_(threads), answer_(std::move(answer)), deliver_(std::move(deliver)) {}
HttpWorkers::~HttpWorkers() { Stop(); }

void HttpWorkers::Start() {
  for (int i = 0; i < count_; ++i) threads_.emplace_back([this] { Run(); });
}

void HttpWorkers::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HttpWorkers::Post(Task task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  wake_.NotifyOne();
}

void HttpWorkers::Run() {
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && tasks_.empty()) wake_.Wait(mutex_);
    if (stopping_) return;
    Finished finished;
    {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      finished = {task.fd, task.id, answer_(task.request, task.caller), task.body_bytes};
    }
    deliver_(std::move(finished));
    lock.Lock();
  }
}

}  // namespace rollcall
