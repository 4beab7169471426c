// A process whose environment nobody can read to its end: who reads /proc/PID/environ (or cmdline)
// waits in the kernel for a page that never comes, as for a process whose memory is locked there.
// Needs a PAD in the environment, longer than two pages.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main() {
  const char* pad = getenv("PAD");
  const auto page = static_cast<uintptr_t>(getpagesize());
  if (pad == nullptr || strlen(pad) < 2 * page) return 2;
  const uintptr_t whole = (reinterpret_cast<uintptr_t>(pad) + page - 1) / page * page;
  const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (fd < 0) return 77;  // not permitted here
  uffdio_api api = {};
  api.api = UFFD_API;
  uffdio_register range = {};
  range.range = {whole, page};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0) return 77;
  if (madvise(reinterpret_cast<void*>(whole), page, MADV_DONTNEED) != 0) return 77;
  printf("ready\n");
  fflush(stdout);
  pause();
}
