// SPDX-License-Identifier: Apache-2.0
// Where a request ends in the bytes of a connection. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rollcall {

inline constexpr size_t kMostHeadBytes = 16 << 10;
inline constexpr size_t kMostBodyBytes = 64 << 10;

struct RequestEnd {
  size_t size = 0;  // of the first request, head and body; 0: it is not whole
  int refusal = 0;  // the HTTP status with which it must be refused; 0: none
};

RequestEnd FindRequestEnd(std::string_view bytes);

// "/healthz" of "GET /healthz?x HTTP/1.1". "": that is no GET or HEAD.
std::string_view PathOf(std::string_view request);

}  // namespace rollcall
