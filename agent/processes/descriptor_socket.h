// SPDX-License-Identifier: Apache-2.0
// A socket through which processes of this host pass descriptors to the agent: their memory, or the
// stderr for a print of their stacks (interpose/segment.h, "Sockets").
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

struct PassedDescriptor {
  char kind = 0;
  pid_t pid = 0;  // of the sender, from the kernel, in this process's pid namespace
  UniqueFd fd;
};

class DescriptorSocket {
 public:
  // Replaces a socket file without a listener. Errors: kAlreadyExists (another agent listens
  // there), kInvalidArgument (unusable folder), kUnavailable.
  static absl::StatusOr<std::unique_ptr<DescriptorSocket>> Listen(const std::string& path);
  ~DescriptorSocket();  // removes the socket file
  DescriptorSocket(const DescriptorSocket&) = delete;
  DescriptorSocket& operator=(const DescriptorSocket&) = delete;

  // nullopt: no descriptor arrived in time.
  std::optional<PassedDescriptor> Receive(int64_t timeout_ns);

 private:
  DescriptorSocket(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const UniqueFd fd_;
};

}  // namespace rollcall
