// SPDX-License-Identifier: Apache-2.0
// The bytes of one connection of the page, plain or through TLS.
//
// Never blocks. The thread that owns the connection calls it. Does not own the socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "security/certificates/tls_context.h"

namespace rollcall {

enum class IoState {
  kDone,       // `count` bytes, at least one
  kWantRead,   // call again when the socket has bytes
  kWantWrite,  // call again when the socket takes bytes
  kEnded,      // the client has closed the connection, or it is broken
  kNotTls,     // of TLS: the client speaks plain HTTP; nothing was read
  kTls,        // of plain: the client speaks TLS
};

struct IoResult {
  IoState state = IoState::kEnded;
  size_t count = 0;
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  virtual IoResult Read(char* bytes, size_t size) = 0;
  // After kWantRead or kWantWrite, the next call must offer the same bytes, or more.
  virtual IoResult Write(const char* bytes, size_t size) = 0;
  // Whether Read() has bytes although the socket has none.
  virtual bool HasPending() const = 0;
  // Tells the client that no more bytes follow, as far as the socket takes it.
  virtual void SayEnd() = 0;
  virtual bool is_encrypted() const = 0;
  // The client's certificate, whose chain is verified. Empty if there is none.
  virtual std::string certificate_pem() const = 0;
};

std::unique_ptr<HttpTransport> MakePlainTransport(int fd);
// Returns nullptr if there is no memory.
std::unique_ptr<HttpTransport> MakeTlsTransport(int fd, std::shared_ptr<const TlsContext> context);

}  // namespace rollcall
