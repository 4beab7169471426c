// SPDX-License-Identifier: Apache-2.0
#include "net/http_workers.h"

#include <utility>

#include "base/peer_address.h"

namespace rollcall {

HttpWorkers::HttpWorkers(int threads, HttpAnswer answer, Deliver deliver)
    : answer_(std::move(answer)),
      deliver_(std::move(deliver)),
      turns_(static_cast<size_t>(threads)),
      worker_(Worker::kNoLimit, threads) {}

void HttpWorkers::Start() { worker_.Start(); }

void HttpWorkers::Stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
    turns_.Clear();
  }
  worker_.Finish(SteadyTime::max(), Worker::Waiting::kDrop);
}

void HttpWorkers::Post(Task task) {
  {
    const MutexLock lock(mutex_);
    if (is_stopping_) return;
    const std::string address(PeerWithoutPort(task.caller.peer));
    turns_.Add(address, std::move(task));
  }
  worker_.Post([this] { RunTurns(); });
}

std::optional<FairTurns<HttpWorkers::Task>::Turn> HttpWorkers::Take() {
  const MutexLock lock(mutex_);
  return turns_.Take();
}

void HttpWorkers::End(const std::string& owner) {
  const MutexLock lock(mutex_);
  turns_.End(owner);
}

// A thread leaves if no task may run now. So each one that has run a task looks for the next.
void HttpWorkers::RunTurns() {
  while (auto turn = Take()) {
    Task& task = turn->item;
    Finished finished = {task.id, answer_(task.request, task.caller), task.body_bytes};
    task = Task();  // it may be large
    End(turn->owner);
    deliver_(std::move(finished));
  }
}

}  // namespace rollcall
