// SPDX-License-Identifier: Apache-2.0
// Apart from the rest: the kernel's header and that of the C library exclude each other.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "security/http_watchdog.h"

namespace rollcall {

uint64_t ReceivedBytes(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  const size_t needed = offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
  return size >= needed ? info.tcpi_bytes_received : 0;
}

}  // namespace rollcall
