// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/pidfd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

// The system call number on every architecture; older headers lack it.
constexpr long kPidfdOpen = 434;

// struct pidfd_info of Linux 6.15, include/uapi/linux/pidfd.h. Newer kernels fill only the size
// that the request number contains.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t pid;
  uint32_t tgid;
  uint32_t ppid;
  uint32_t ids[8];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);

constexpr uint64_t kInfoExit = 1 << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr unsigned long kPidfdGetPidNamespace = _IO(0xFF, 5);
constexpr unsigned long kPidfdGetUserNamespace = _IO(0xFF, 9);

}  // namespace

absl::StatusOr<int> OpenPidfd(pid_t pid) {
  const long fd = syscall(kPidfdOpen, pid, 0);
  if (fd >= 0) return static_cast<int>(fd);
  const std::string text = absl::StrCat("pidfd_open of ", pid, ": ", std::strerror(errno));
  if (errno == ESRCH || errno == EINVAL) return absl::NotFoundError(text);
  if (errno == ENOSYS || errno == EPERM) return absl::UnimplementedError(text);
  return absl::UnavailableError(text);
}

std::vector<int> FindEndedPidfds(const std::vector<int>& pidfds) {
  std::vector<pollfd> requests;
  requests.reserve(pidfds.size());
  for (const int pidfd : pidfds) requests.push_back({pidfd, POLLIN, 0});
  std::vector<int> ended;
  if (poll(requests.data(), requests.size(), 0) <= 0) return ended;
  for (const pollfd& request : requests) {
    if ((request.revents & POLLIN) != 0) ended.push_back(request.fd);
  }
  return ended;
}

std::optional<int> PidfdWaitStatus(int pidfd) {
  PidfdInfo info;
  std::memset(&info, 0, sizeof(info));
  info.mask = kInfoExit;
  if (ioctl(pidfd, kPidfdGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

UniqueFd PidfdUserNamespace(int pidfd) { return UniqueFd(ioctl(pidfd, kPidfdGetUserNamespace, 0)); }

UniqueFd PidfdPidNamespace(int pidfd) { return UniqueFd(ioctl(pidfd, kPidfdGetPidNamespace, 0)); }

}  // namespace rollcall
