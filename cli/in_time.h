// SPDX-License-Identifier: Apache-2.0
// Uses a folder, with a time limit: its file server may be gone, and no call to it returns then.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace rollcall {

// `work` must own all that it uses. kDeadlineExceeded: it has not ended after two seconds, and a
// thread of its own goes on with it. `folder` names the folder in that error.
absl::Status UseInTime(const std::string& folder, std::function<absl::Status()> work);

// Does the same for work with a result. The result of work that ends too late is dropped.
template <typename Result>
absl::StatusOr<Result> GetInTime(const std::string& folder,
                                 std::function<absl::StatusOr<Result>()> work) {
  const auto result = std::make_shared<absl::StatusOr<Result>>(absl::UnknownError(""));
  const absl::Status done = UseInTime(folder, [result, work = std::move(work)] {
    *result = work();
    return result->status();
  });
  if (!done.ok()) return done;
  return std::move(*result);
}

}  // namespace rollcall
