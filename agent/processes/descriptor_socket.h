// SPDX-License-Identifier: Apache-2.0
// A socket through which processes of this host pass descriptors to the agent: their memory, or the
// stderr for a print of their stacks (interpose/segment.h, "Sockets").
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
  // Makes the socket file `name` in the open folder, and replaces one without a listener. Works on
  // the descriptor, so a renamed or replaced folder does not mislead it. The file belongs to
  // the thread's user, and only that user can connect: see as_user.h for a folder of another one.
  // Errors: kAlreadyExists (another agent listens there), kInvalidArgument (no socket has that
  // name, or the name is too long), kUnavailable.
  static absl::StatusOr<std::unique_ptr<DescriptorSocket>> Listen(UniqueFd folder,
                                                                  const std::string& name);
  ~DescriptorSocket();  // removes the socket file
  DescriptorSocket(const DescriptorSocket&) = delete;
  DescriptorSocket& operator=(const DescriptorSocket&) = delete;

  // nullopt if no descriptor arrived in time.
  std::optional<PassedDescriptor> Receive(int64_t timeout_ns);

 private:
  DescriptorSocket(UniqueFd folder, std::string name, UniqueFd fd)
      : folder_(std::move(folder)), name_(std::move(name)), fd_(std::move(fd)) {}

  const UniqueFd folder_;
  const std::string name_;
  const UniqueFd fd_;
};

}  // namespace rollcall
