// SPDX-License-Identifier: Apache-2.0
// One connection of the page's server, and its deadlines. Owned by the thread that serves all.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "net/http_request.h"
#include "net/http_transport.h"
#include "net/http_types.h"

namespace rollcall {

enum class HttpPhase { kReading, kAnswering, kWriting, kStreaming };

struct HttpConnection {
  UniqueFd fd;      // closes after the transport has ended
  uint64_t id = 0;  // unique, unlike the descriptor
  std::unique_ptr<HttpTransport> transport;
  std::string peer;   // its address, as in HttpCaller
  std::string local;  // likewise
  HttpPhase phase = HttpPhase::kReading;
  // What the last read or write waits for. A read of TLS may wait until it can write.
  IoState read_wants = IoState::kWantRead, write_wants = IoState::kWantWrite;
  std::string in, out;
  RequestFinder finder;      // of the request at the beginning of `in`
  size_t body_bytes = 0;     // what this request has of the limit over all bodies
  size_t sent = 0;           // bytes of `out`
  bool close_after = false;  // close the connection after `out`
  bool had_bytes = false;    // from the client; of TLS: the handshake is complete
  bool is_not_tls = false;   // the client speaks plain HTTP where the server speaks TLS
  bool had_request = false;  // the connection had a request before
  int64_t since_ns = 0;      // start of this phase; of a request: its first byte
  int64_t progress_ns = 0;   // time of the client's last progress

  bool has_unsent() const { return sent < out.size(); }
  bool is_idle() const { return phase == HttpPhase::kReading && in.empty() && had_request; }
};

// The events that a connection in this state waits for.
uint32_t EpollEvents(const HttpConnection& connection);

// Writes what the client takes of `out`, about `most` bytes. Returns false if the connection is
// broken.
bool WriteOut(HttpConnection* connection, size_t most, int64_t now_ns);

// Sends as much as the socket takes. A client in its handshake gets nothing.
void SendLast(const HttpConnection& connection, const std::string& bytes);

bool IsLate(const HttpConnection& connection, const HttpLimits& limits, int64_t now_ns);

// Whether a new connection may take the place of this one, because it waits for its client.
bool IsReplaceable(const HttpConnection& connection, int64_t now_ns);

// Whether a new request may take the room of this one's body, because its client has stopped
// sending.
bool IsStalledBody(const HttpConnection& connection, int64_t now_ns);

// The other end of the connection, for the responses.
HttpCaller CallerOf(const HttpConnection& connection);

// The response without a request that the router could read. `status` is one that
// FindRequestEnd() returns, 408 or 503.
std::string HttpRefusal(int status);
// The response to plain HTTP on a port of TLS.
std::string NotTlsRefusal();
// The responses to /healthz.
std::string HealthyResponse(bool is_head);
std::string UnhealthyResponse(const std::string& problem);

// "ipv4:127.0.0.1:41922", "ipv6:[::1]:41922", "unix:". IPv4 within IPv6 becomes IPv4.
std::string FormatPeer(const sockaddr_storage& address);
// The address of this host at which the connection arrived, in the same form; empty if unknown.
std::string LocalAddressOf(int fd);

}  // namespace rollcall
