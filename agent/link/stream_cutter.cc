// SPDX-License-Identifier: Apache-2.0
#include "agent/link/stream_cutter.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

namespace rollcall {

void StreamCutter::SetUplinkRuns(bool runs) {
  const MutexLock lock(mutex_);
  uplink_runs_ = runs;
  ended_.NotifyAll();
}

std::shared_ptr<grpc::ClientContext> StreamCutter::NewContext() {
  auto context = std::make_shared<grpc::ClientContext>();
  const MutexLock lock(mutex_);
  if (cut_off_) context->TryCancel();
  context_ = context;
  return context;
}

void StreamCutter::AwaitEnd(std::chrono::steady_clock::duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (uplink_runs_ && ended_.WaitUntil(mutex_, deadline)) {
  }
  if (!uplink_runs_) return;
  cut_off_ = true;
  if (context_ != nullptr) context_->TryCancel();
  spdlog::warn("the daemon does not answer: it may not have the last state of this host");
}

}  // namespace rollcall
