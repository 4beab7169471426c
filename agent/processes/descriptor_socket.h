// SPDX-License-Identifier: Apache-2.0
// A socket by which processes of this host pass descriptors to the agent: their memory, or the
// stderr on which they want their stacks (interpose/segment.h, "Sockets").
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/processes/unique_fd.h"

namespace rollcall {

struct PassedDescriptor {
  char what = 0;
  pid_t pid = 0;  // of the sender, as the kernel and this process's pid namespace have it
  UniqueFd fd;
};

class DescriptorSocket {
 public:
  // Takes over a name that nobody listens on any more. Errors: kAlreadyExists (another listens
  // there), kInvalidArgument (the folder cannot be used), kUnavailable.
  static absl::StatusOr<std::unique_ptr<DescriptorSocket>> Listen(const std::string& path);
  ~DescriptorSocket();  // removes the name
  DescriptorSocket(const DescriptorSocket&) = delete;
  DescriptorSocket& operator=(const DescriptorSocket&) = delete;

  // nullopt: none came in time.
  std::optional<PassedDescriptor> Receive(int64_t timeout_ns);

 private:
  DescriptorSocket(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const UniqueFd fd_;
};

}  // namespace rollcall
