// SPDX-License-Identifier: Apache-2.0
// Times in messages.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

namespace rollcall {

inline int64_t ToNs(const google::protobuf::Timestamp& time) {
  return time.seconds() * int64_t{1'000'000'000} + time.nanos();
}

}  // namespace rollcall
