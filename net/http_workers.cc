// SPDX-License-Identifier: Apache-2.0
#include "net/http_workers.h"

#include <utility>

namespace rollcall {

HttpWorkers::HttpWorkers(int threads, HttpAnswer answer, Deliver deliver)
    : answer_(std::move(answer)),
      deliver_(std::move(deliver)),
      worker_(Worker::kNoLimit, threads) {}

void HttpWorkers::Start() { worker_.Start(); }

void HttpWorkers::Stop() { worker_.Finish(SteadyTime::max(), Worker::Waiting::kDrop); }

void HttpWorkers::Post(Task task) {
  worker_.Post([this, task = std::move(task)]() mutable {
    Finished finished = {task.fd, task.id, answer_(task.request, task.caller), task.body_bytes};
    task = Task();  // it may be large
    deliver_(std::move(finished));
  });
}

}  // namespace rollcall
