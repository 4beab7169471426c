// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/proxy.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "tests/sim/nccl/quiet_thread.h"

namespace rollcall::sim {

struct Proxy::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool ends = false;

  // Empty: there will be none.
  std::function<void()> Next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return ends || !work.empty(); });
    if (work.empty()) return nullptr;
    std::function<void()> next = std::move(work.front());
    work.pop_front();
    return next;
  }
};

Proxy::Proxy(int device) : shared_(std::make_shared<Shared>()) {
  StartQuietThread([shared = shared_, device] {
    const std::string name =
        (device < 10 ? "NCCL Progress " : "NCCL Progress") + std::to_string(device);
    pthread_setname_np(pthread_self(), name.c_str());
    while (const auto work = shared->Next()) work();
  });
}

Proxy::~Proxy() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->ends = true;
  }
  shared_->changed.notify_all();
}

void Proxy::Run(std::function<void()> work) {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->work.push_back(std::move(work));
  }
  shared_->changed.notify_all();
}

}  // namespace rollcall::sim
