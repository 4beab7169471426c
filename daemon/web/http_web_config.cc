// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_web_config.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <chrono>
#include <utility>

namespace rollcall {
namespace {

constexpr std::chrono::seconds kLookEvery(1);

}  // namespace

HttpWebConfig::HttpWebConfig(std::string path)
    : shared_(std::make_shared<Shared>(std::move(path))) {}
HttpWebConfig::~HttpWebConfig() { Stop(); }

absl::Status HttpWebConfig::Start() {
  const absl::Status status = shared_->file.Poll(time(nullptr));
  if (status.ok()) thread_.Start([shared = shared_] { Run(shared); });
  return status;
}

void HttpWebConfig::Stop() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->wake.NotifyAll();
  }
  thread_.Join(std::chrono::steady_clock::now() + kLookEvery);
}

void HttpWebConfig::Run(const std::shared_ptr<Shared>& shared) {
  std::string said;  // the last error in the log
  MutexLock lock(shared->mutex);
  while (true) {
    const auto next_look = std::chrono::steady_clock::now() + kLookEvery;
    while (!shared->stopping && shared->wake.WaitUntil(shared->mutex, next_look)) {
    }
    if (shared->stopping) return;
    lock.Unlock();
    const absl::Status status = shared->file.Poll(time(nullptr));
    const std::string problem(status.message());
    if (!problem.empty() && problem != said) {
      spdlog::error("--http-config: {}; the last good one stays in use", problem);
    }
    if (problem.empty() && !said.empty()) spdlog::info("--http-config: good again");
    said = problem;
    lock.Lock();
  }
}

}  // namespace rollcall
