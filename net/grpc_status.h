// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "base/clean_text.h"

namespace rollcall {

// Both libraries use the same codes. A message may repeat a part of the request, and ends on a
// terminal: so it is cleaned here.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), CleanLines(std::string(status.message()))};
}

}  // namespace rollcall
