// SPDX-License-Identifier: Apache-2.0
#include "cli/in_time.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/loose_thread.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kPatience{2};

}  // namespace

absl::Status UseInTime(const std::string& folder, std::function<absl::Status()> work) {
  const auto status = std::make_shared<absl::Status>();
  LooseThread thread;
  thread.Start([status, work = std::move(work)] { *status = work(); });
  if (thread.Join(std::chrono::steady_clock::now() + kPatience)) return *status;
  return absl::DeadlineExceededError(absl::StrCat(folder, " does not answer"));
}

}  // namespace rollcall
