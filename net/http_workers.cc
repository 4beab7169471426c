// SPDX-License-Identifier: Apache-2.0
#include "net/http_workers.h"

#include <utility>

#include "absl/strings/match.h"

namespace rollcall {
namespace {

constexpr char kUnauthorized[] = "HTTP/1.1 401";

}  // namespace

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
  task.credential = HttpSenders::CredentialOf(task.request, task.caller);
  {
    const MutexLock lock(mutex_);
    if (is_stopping_) return;
    const std::string owner = senders_.OwnerOf(task.credential, task.caller);
    turns_.Add(owner, std::move(task));
  }
  worker_.Post([this] { RunTurns(); });
}

std::optional<FairTurns<HttpWorkers::Task>::Turn> HttpWorkers::Take() {
  const MutexLock lock(mutex_);
  return turns_.Take();
}

void HttpWorkers::End(const FairTurns<Task>::Turn& turn, const HttpReply& reply) {
  const MutexLock lock(mutex_);
  turns_.End(turn.owner);
  // Some addresses of the page ask for no credential.
  const bool is_asked = !reply.viewer.user.empty() || absl::StartsWith(reply.bytes, kUnauthorized);
  if (is_asked) senders_.Learn(turn.item.credential, reply.viewer.user);
}

// A thread leaves if no task may run now. So each one that has run a task looks for the next.
void HttpWorkers::RunTurns() {
  while (auto turn = Take()) {
    Task& task = turn->item;
    Finished finished = {task.id, answer_(task.request, task.caller), task.body_bytes};
    task.request = std::string();  // it may be large
    End(*turn, finished.reply);
    deliver_(std::move(finished));
  }
}

}  // namespace rollcall
