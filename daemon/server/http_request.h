// SPDX-License-Identifier: Apache-2.0
// Finds the end of a request in the bytes of a connection. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rollcall {

inline constexpr size_t kMostHeadBytes = 16 << 10;
inline constexpr size_t kMostBodyBytes = 64 << 10;

struct RequestEnd {
  size_t size = 0;  // of the first request, head and body; 0: the request is incomplete
  int refusal = 0;  // the HTTP status of the refusal; 0: none
};

RequestEnd FindRequestEnd(std::string_view bytes);

// Returns "/healthz" for "GET /healthz?x HTTP/1.1", and "" for methods other than GET and HEAD.
std::string_view RequestPath(std::string_view request);

}  // namespace rollcall
