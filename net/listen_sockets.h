// SPDX-License-Identifier: Apache-2.0
// Opens the sockets of the gRPC port.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

// Closes the sockets that it still owns, and removes its unix socket if the path still leads there.
class ListenSockets {
 public:
  // `address` is HOST:PORT, with port 0 for any free one, or unix:PATH, whose socket this user
  // alone may use. HOST is an address or a name, of which all addresses are opened; 0.0.0.0 and
  // [::] are all addresses of this host, of both families. The sockets do not listen yet.
  //
  // kUnavailable: the address is in use, or belongs to another machine. A unix socket on which a
  // process listens is in use; one that a dead process left is replaced. The error names what to
  // type.
  static absl::StatusOr<ListenSockets> Open(const std::string& address);

  ListenSockets() = default;
  ListenSockets(ListenSockets&& other) noexcept { *this = std::move(other); }
  ListenSockets& operator=(ListenSockets&& other) noexcept;
  ~ListenSockets();

  // The caller owns them from now on.
  std::vector<UniqueFd> Release();
  int port() const { return port_; }  // 0 if there is none

 private:
  absl::Status OpenUnix(const std::string& path);
  absl::Status OpenEverywhere(uint16_t port);
  absl::Status OpenAllOf(const std::string& host, uint16_t port);
  // Returns errno, or 0.
  int Bind(const sockaddr* address, socklen_t size);

  std::vector<UniqueFd> fds_;
  int port_ = 0;
  std::string path_;  // of the unix socket, or empty
  dev_t device_ = 0;  // of the file at this path
  ino_t inode_ = 0;
};

}  // namespace rollcall
