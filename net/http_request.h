// SPDX-License-Identifier: Apache-2.0
// What of a client's bytes the server reads as a request: where a request ends, which requests it
// refuses unread, and which header fields it takes notice of. Pure.
//
// Strangers can send any request. httplib's parts for ranges, encoded bodies and forms in several
// parts turn a small request into a large answer or a large copy, so no such request reaches them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rollcall {

inline constexpr size_t kMostHeadBytes = 16 << 10;
// Limit of the first line, and of one header field. httplib takes 8,192 bytes with the line's end.
inline constexpr size_t kMostLineBytes = 8000;
inline constexpr int kMostFields = 100;
inline constexpr size_t kMostBodyBytes = 64 << 10;  // of the page

struct RequestEnd {
  size_t size = 0;  // of the first request, head and body; 0 if the request is incomplete
  int refusal = 0;  // the HTTP status of the refusal, or 0
};

RequestEnd FindRequestEnd(std::string_view bytes);

// FindRequestEnd() for bytes that arrive one after the other: looks at each head once, however
// small the packets are.
class RequestFinder {
 public:
  explicit RequestFinder(size_t most_body_bytes = kMostBodyBytes)
      : most_body_bytes_(most_body_bytes) {}

  // `bytes`: all that has arrived since the end of the last request; they begin with those of the
  // last call.
  RequestEnd Find(std::string_view bytes);
  // The body's length of the request whose head Find() has seen; 0 before.
  size_t body_bytes() const { return body_bytes_; }
  // The next bytes are of another request.
  void Reset() { *this = RequestFinder(most_body_bytes_); }

 private:
  size_t most_body_bytes_;
  size_t searched_ = 0;  // bytes in which the head does not end
  size_t size_ = 0;      // of the request; 0 if its head is incomplete
  size_t body_bytes_ = 0;
};

// Returns a complete request without the header fields that the server has no use for, such as
// Range and Expect. Of the encodings that the client accepts, only gzip remains.
std::string KeepKnownFields(std::string_view request);

// Returns the header fields that identify the sender of a request; empty if there are none.
std::string CredentialFields(std::string_view request);

// Returns "/healthz" for "GET /healthz?x HTTP/1.1", and "" for methods other than GET and HEAD.
std::string_view RequestPath(std::string_view request);

}  // namespace rollcall
