// SPDX-License-Identifier: Apache-2.0
#include "agent/ras/ras_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr char kGreeting[] = "CLIENT PROTOCOL 2\n";
constexpr char kGreeted[] = "SERVER PROTOCOL ";
constexpr size_t kMostLine = 1024;      // of an answer to a setting
constexpr size_t kMostShownBytes = 60;  // of a stranger's text, in an error
constexpr int64_t kRasNsPerMs = 1'000'000;

// How a wait ended.
enum class Ready : uint8_t { kYes, kLate, kFailed };

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

bool IsMappedIpv4(const TcpEnd& end) { return end.address[10] == 0xff && end.address[11] == 0xff; }

SocketAddress ToSocketAddress(const TcpEnd& end) {
  SocketAddress out;
  if (IsMappedIpv4(end)) {
    auto* in = reinterpret_cast<sockaddr_in*>(&out.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(end.port);
    std::memcpy(&in->sin_addr, &end.address[12], sizeof(in->sin_addr));
    if (in->sin_addr.s_addr == htonl(INADDR_ANY)) in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.size = sizeof(*in);
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&out.storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(end.port);
    std::memcpy(&in->sin6_addr, end.address.data(), end.address.size());
    if (IN6_IS_ADDR_UNSPECIFIED(&in->sin6_addr)) in->sin6_addr = in6addr_loopback;
    out.size = sizeof(*in);
  }
  return out;
}

Ready WaitFor(int fd, short events, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ms = (deadline_ns - MonotonicNs() + kRasNsPerMs - 1) / kRasNsPerMs;
    if (left_ms <= 0) return Ready::kLate;
    pollfd wait = {fd, events, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
    if (ready > 0) return Ready::kYes;
    if (ready == 0) return Ready::kLate;
    if (errno != EINTR) return Ready::kFailed;
  }
}

absl::Status LateError(absl::string_view what) {
  return absl::DeadlineExceededError(absl::StrCat(what, " in time"));
}

absl::StatusOr<UniqueFd> Connect(const TcpEnd& end, int64_t deadline_ns) {
  const SocketAddress address = ToSocketAddress(end);
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::InternalError(absl::StrCat("no socket: ", strerror(errno)));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0)
    return fd;
  if (errno != EINPROGRESS)
    return absl::UnavailableError(absl::StrCat("cannot connect: ", strerror(errno)));
  if (WaitFor(fd.get(), POLLOUT, deadline_ns) != Ready::kYes)
    return LateError("it did not accept a connection");
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return absl::UnavailableError(absl::StrCat("cannot connect: ", strerror(error)));
  return fd;
}

// Lines are short, so the kernel takes one at once unless the client does not read.
absl::Status Send(int fd, absl::string_view line, int64_t deadline_ns) {
  while (!line.empty()) {
    const ssize_t sent = send(fd, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      line.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (WaitFor(fd, POLLOUT, deadline_ns) != Ready::kYes)
        return LateError("it did not read the question");
    } else if (errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("it closed the connection: ", strerror(errno)));
    }
  }
  return absl::OkStatus();
}

// Receives at most `most` bytes. 0 means the end.
absl::StatusOr<size_t> Receive(int fd, char* buffer, size_t most, int64_t deadline_ns) {
  for (;;) {
    const ssize_t count = recv(fd, buffer, most, 0);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno == EAGAIN) {
      if (WaitFor(fd, POLLIN, deadline_ns) != Ready::kYes) return LateError("it did not answer");
    } else if (errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("it broke the connection: ", strerror(errno)));
    }
  }
}

// Without its end. Byte by byte, so that nothing of the answer to the next line is taken.
absl::StatusOr<std::string> ReceiveLine(int fd, int64_t deadline_ns) {
  std::string line;
  for (;;) {
    char byte = 0;
    const absl::StatusOr<size_t> count = Receive(fd, &byte, 1, deadline_ns);
    if (!count.ok()) return count.status();
    if (*count == 0) return absl::UnavailableError("it closed the connection");
    if (byte == '\n') return std::string(absl::StripSuffix(line, "\r"));
    line += byte;
    if (line.size() > kMostLine) return absl::InvalidArgumentError("it answered with a long line");
  }
}

absl::Status NotRas(const std::string& said) {
  return absl::InvalidArgumentError(absl::StrCat("it is not NCCL's RAS: it answered \"",
                                                 CutText(CleanText(said), kMostShownBytes, "..."),
                                                 "\""));
}

absl::Status Greet(int fd, int64_t deadline_ns) {
  if (const absl::Status sent = Send(fd, kGreeting, deadline_ns); !sent.ok()) return sent;
  const absl::StatusOr<std::string> answer = ReceiveLine(fd, deadline_ns);
  if (!answer.ok()) return answer.status();
  return absl::StartsWithIgnoreCase(*answer, kGreeted) ? absl::OkStatus() : NotRas(*answer);
}

// Whether RAS has the setting. An older one answers that the command is unknown, and goes on.
absl::StatusOr<bool> Set(int fd, const std::string& line, int64_t deadline_ns) {
  if (const absl::Status sent = Send(fd, line, deadline_ns); !sent.ok()) return sent;
  const absl::StatusOr<std::string> answer = ReceiveLine(fd, deadline_ns);
  if (!answer.ok()) return answer.status();
  if (absl::EqualsIgnoreCase(*answer, "OK")) return true;
  if (absl::StartsWithIgnoreCase(*answer, "ERROR")) return false;
  return NotRas(*answer);
}

// Receives until RAS closes the connection.
absl::StatusOr<RasText> ReceiveText(int fd, const RasLimits& limits, int64_t deadline_ns) {
  RasText answer;
  char buffer[16 << 10];
  for (;;) {
    const absl::StatusOr<size_t> count = Receive(fd, buffer, sizeof(buffer), deadline_ns);
    if (!count.ok() && answer.text.empty()) return count.status();
    answer.cut = !count.ok() || answer.text.size() + *count > limits.most_bytes;
    if (!count.ok() || *count == 0) break;
    answer.text.append(buffer, std::min(*count, limits.most_bytes - answer.text.size()));
    if (answer.cut) break;
  }
  if (answer.text.empty()) return absl::UnavailableError("it closed the connection");
  answer.text = CleanLines(answer.text);
  return answer;
}

absl::StatusOr<UniqueFd> ConnectAndGreet(const TcpEnd& local, const RasLimits& limits,
                                         int64_t deadline_ns) {
  absl::Status failed = LateError("it did not answer");
  for (int i = 0; i < limits.tries && MonotonicNs() < deadline_ns; ++i) {
    absl::StatusOr<UniqueFd> fd =
        Connect(local, std::min(deadline_ns, MonotonicNs() + limits.connect_ns));
    if (!fd.ok()) return fd.status();
    failed = Greet(fd->get(), std::min(deadline_ns, MonotonicNs() + limits.greeting_ns));
    if (failed.ok()) return fd;
    if (!absl::IsDeadlineExceeded(failed)) return failed;
  }
  return failed;
}

}  // namespace

absl::StatusOr<RasText> AskRasAt(const TcpEnd& local, const RasLimits& limits) {
  const int64_t end_ns = MonotonicNs() + limits.total_ns;
  const absl::StatusOr<UniqueFd> fd = ConnectAndGreet(local, limits, end_ns);
  if (!fd.ok()) return fd.status();
  const int64_t deadline_ns = std::min(end_ns, MonotonicNs() + limits.answer_ns);
  const absl::StatusOr<bool> timed =
      Set(fd->get(), absl::StrCat("TIMEOUT ", limits.ras_seconds, "\n"), deadline_ns);
  if (!timed.ok()) return timed.status();
  const absl::StatusOr<bool> is_json = Set(fd->get(), "SET FORMAT json\n", deadline_ns);
  if (!is_json.ok()) return is_json.status();
  if (const absl::Status sent = Send(fd->get(), "VERBOSE STATUS\n", deadline_ns); !sent.ok())
    return sent;
  absl::StatusOr<RasText> answer = ReceiveText(fd->get(), limits, deadline_ns);
  if (answer.ok()) answer->json = *is_json;
  return answer;
}

}  // namespace rollcall
