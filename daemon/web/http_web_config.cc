// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_web_config.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <chrono>

namespace rollcall {
namespace {

constexpr std::chrono::seconds kLookEvery(1);

}  // namespace

absl::Status HttpWebConfig::Start() {
  absl::Status status = file_->Poll(time(nullptr));
  if (!status.ok()) return status;
  worker_.Repeat([file = file_, said = std::string()]() mutable {  // `said`: last in the log
    const std::string problem(file->Poll(time(nullptr)).message());
    if (!problem.empty() && problem != said) {
      spdlog::error("--http-config: {}; keeping the last valid one", problem);
    }
    if (problem.empty() && !said.empty()) spdlog::info("--http-config: valid again");
    said = problem;
    return kLookEvery;
  });
  return status;
}

void HttpWebConfig::Stop() { worker_.Finish(std::chrono::steady_clock::now() + kLookEvery); }

}  // namespace rollcall
