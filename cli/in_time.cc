// SPDX-License-Identifier: Apache-2.0
#include "cli/in_time.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/result_in_time.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kPatience{2};

}  // namespace

absl::Status UseInTime(const std::string& folder, std::function<absl::Status()> work) {
  ResultInTime<absl::Status> result(std::move(work));
  return result.Take(std::chrono::steady_clock::now() + kPatience)
      .value_or(absl::DeadlineExceededError(absl::StrCat(folder, " does not answer")));
}

}  // namespace rollcall
