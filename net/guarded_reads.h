// SPDX-License-Identifier: Apache-2.0
// Puts Http2Guard in front of gRPC, which shows no code the bytes of a connection before it parses
// them: this library defines the two functions by which gRPC's server reads, recvmsg() and
// OpenSSL's SSL_read(), and shows the guard what they read. A connection that breaks a limit reads
// an error from then on, so gRPC closes it. Other users of these functions notice nothing.
//
// docs/decisions/certificates.md has the reasons.
#pragma once

#include <cstdint>

namespace rollcall {

// Watches this connection, before gRPC has it. The watch ends with the socket. Every server in the
// program that reads by SSL_read() is gRPC's, whatever protocol the client names. Ours reads by
// SSL_read_ex().
//
// All connections whose callers are unknown share a StrangerBudget. Without TLS nothing but an
// address tells callers apart, so there they share the calls also once they are known.
void GuardConnection(int fd, bool is_tls);
// The daemon knows the caller of this connection. `inode`: of its socket. Thread-safe.
void AdmitGuarded(int fd, uint64_t inode);
// Whether a call has begun on this connection. Thread-safe.
bool HasCalledGuarded(int fd, uint64_t inode);
// This connection has ended, or ends now, and the daemon does not know its caller. Thread-safe.
void EndGuarded(int fd, uint64_t inode);

// Connections that were ended, since the start of the program, and the reason of the newest; "" at
// first. Thread-safe.
struct GuardedEnds {
  uint64_t count = 0;
  const char* reason = "";
};
GuardedEnds EndedByGuard();

}  // namespace rollcall
