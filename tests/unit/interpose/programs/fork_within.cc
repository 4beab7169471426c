// SPDX-License-Identifier: Apache-2.0
// For tests: a preloaded library that acts as another thread of the program. It forks while
// Rollcall's library makes its segment, inside the calls that open, map and close the segment.
//
//   FORK_WITHIN=open | first_map | second_map | close   after which of them
//   FORK_CHILD=path                                     the child writes its pid there, and stays
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

int segment_fd = -1;
int maps = 0;

template <typename Function>
Function* Next(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void ForkAfter(const char* call) {
  const char* wanted = getenv("FORK_WITHIN");
  if (wanted == nullptr || strcmp(wanted, call) != 0 || fork() != 0) return;
  FILE* file = fopen(getenv("FORK_CHILD"), "w");
  fprintf(file, "%d\n", static_cast<int>(getpid()));
  fclose(file);
  alarm(60);  // for a test that has failed
  for (;;) pause();
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  const int fd = Next("open", &open)(path, flags, mode);
  const size_t length = strlen(path);
  if ((flags & O_EXCL) != 0 && length > 4 && strcmp(path + length - 4, ".seg") == 0) {
    segment_fd = fd;
    ForkAfter("open");
  }
  return fd;
}

extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  void* memory = Next("mmap", &mmap)(at, bytes, protection, flags, fd, offset);
  if (segment_fd >= 0 && fd == segment_fd) {
    // Only these two: one child writes the file, and the test ends one.
    const int map = maps++;
    if (map < 2) ForkAfter(map == 0 ? "first_map" : "second_map");
  }
  return memory;
}

extern "C" int close(int fd) {
  const int result = Next("close", &close)(fd);
  if (segment_fd >= 0 && fd == segment_fd) {
    segment_fd = -1;
    ForkAfter("close");
  }
  return result;
}
