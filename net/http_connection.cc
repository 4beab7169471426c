// SPDX-License-Identifier: Apache-2.0
#include "net/http_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// A client that read nothing for this time makes room for another.
constexpr int64_t kReplaceableAfterNs = kSecond;
constexpr char kHealthy[] =
    "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nContent-Type: text/plain\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";

const char* StatusName(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string Refuse(int status, const std::string& text) {
  return absl::StrCat("HTTP/1.1 ", status, " ", StatusName(status),
                      "\r\nContent-Type: text/plain\r\nContent-Length: ", text.size(),
                      status == 503 ? "\r\nRetry-After: 5" : "", "\r\nConnection: close\r\n\r\n",
                      text);
}

uint32_t EventOf(IoState wants) {
  return wants == IoState::kWantWrite ? uint32_t{EPOLLOUT} : uint32_t{EPOLLIN};
}

std::string FormatIp(int family, const void* address, uint16_t port) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof(text));
  return family == AF_INET ? absl::StrCat("ipv4:", text, ":", ntohs(port))
                           : absl::StrCat("ipv6:[", text, "]:", ntohs(port));
}

}  // namespace

uint32_t EpollEvents(const HttpConnection& connection) {
  switch (connection.phase) {
    case HttpPhase::kReading:
      return EventOf(connection.read_wants);
    case HttpPhase::kAnswering:
      return 0;
    case HttpPhase::kWriting:
      return EventOf(connection.write_wants);
    case HttpPhase::kStreaming:
      return EventOf(connection.read_wants) |
             (connection.has_unsent() ? EventOf(connection.write_wants) : 0u);
  }
  return 0;
}

bool WriteOut(HttpConnection* connection, size_t most, int64_t now_ns) {
  const size_t end = connection->sent + most;
  while (connection->has_unsent() && connection->sent < end) {
    const IoResult result = connection->transport->Write(connection->out.data() + connection->sent,
                                                         connection->out.size() - connection->sent);
    if (result.state == IoState::kEnded) return false;
    connection->write_wants =
        result.state == IoState::kWantRead ? IoState::kWantRead : IoState::kWantWrite;
    if (result.state != IoState::kDone) return true;
    connection->sent += result.count;
    connection->progress_ns = now_ns;
  }
  return true;
}

void SendLast(const HttpConnection& connection, const std::string& bytes) {
  if (connection.transport == nullptr) return;
  if (connection.transport->is_encrypted() && !connection.had_bytes) return;
  (void)connection.transport->Write(bytes.data(), bytes.size());
}

bool IsLate(const HttpConnection& connection, const HttpLimits& limits, int64_t now_ns) {
  const int64_t age_ns = now_ns - connection.since_ns;
  const bool is_stalled = now_ns - connection.progress_ns > limits.stalled_ns;
  switch (connection.phase) {
    case HttpPhase::kReading:
      return age_ns > (connection.is_idle() ? limits.idle_ns : limits.request_ns);
    case HttpPhase::kAnswering:
      return false;
    case HttpPhase::kWriting:
      return age_ns > limits.answer_ns || is_stalled;
    case HttpPhase::kStreaming:
      return !connection.out.empty() && is_stalled;
  }
  return false;
}

bool IsReplaceable(const HttpConnection& connection, int64_t now_ns) {
  return connection.phase == HttpPhase::kReading ||
         (connection.phase == HttpPhase::kWriting &&
          now_ns - connection.progress_ns > kReplaceableAfterNs);
}

bool IsStalledBody(const HttpConnection& connection, int64_t now_ns) {
  return connection.phase == HttpPhase::kReading && connection.body_bytes > 0 &&
         now_ns - connection.progress_ns > kReplaceableAfterNs;
}

HttpCaller CallerOf(const HttpConnection& connection) {
  return {connection.peer, connection.local, connection.transport->certificate_pem(),
          connection.transport->is_encrypted()};
}

std::string HttpRefusal(int status) {
  return Refuse(status, absl::StrCat(StatusName(status), "\n"));
}

std::string NotTlsRefusal() {
  return Refuse(400, "this page speaks TLS: https:// instead of http://\n");
}

std::string HealthyResponse(bool is_head) { return absl::StrCat(kHealthy, is_head ? "" : "ok\n"); }

std::string UnhealthyResponse(const std::string& problem) {
  return Refuse(503, absl::StrCat(problem, "\n"));
}

std::string LocalAddressOf(int fd) {
  sockaddr_storage local = {};
  socklen_t size = sizeof(local);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0 ? FormatPeer(local) : "";
}

std::string FormatPeer(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in ip = {};
    std::memcpy(&ip, &address, sizeof(ip));
    return FormatIp(AF_INET, &ip.sin_addr, ip.sin_port);
  }
  if (address.ss_family == AF_UNIX) return "unix:";
  if (address.ss_family != AF_INET6) return "unknown";
  sockaddr_in6 ip = {};
  std::memcpy(&ip, &address, sizeof(ip));
  // The last four bytes of an IPv4 address within IPv6 are the IPv4 address.
  if (IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr)) {
    return FormatIp(AF_INET, &ip.sin6_addr.s6_addr[12], ip.sin6_port);
  }
  return FormatIp(AF_INET6, &ip.sin6_addr, ip.sin6_port);
}

}  // namespace rollcall
