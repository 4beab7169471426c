// SPDX-License-Identifier: Apache-2.0
// A process that blocks all readers of its /proc/PID/maps and environ. It calls execve() while it
// holds a file that execve() closes, and the file system of this file does not answer (like NFS
// without its server). Readers wait until execve() ends. The parent process serves the file system
// in the given folder, until the kernel asks it to flush the file.
//
// Prints "ready" when the child is stuck. Exits with 77 if the system does not permit this.
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string>

namespace {

constexpr uint64_t kFile = 2;

fuse_attr Attributes(uint64_t node) {
  fuse_attr attr = {};
  attr.ino = node;
  attr.mode = node == kFile ? S_IFREG | 0600 : S_IFDIR | 0700;
  attr.nlink = 1;
  return attr;
}

template <typename Body>
void Answer(int fd, const fuse_in_header& request, const Body& body) {
  fuse_out_header header = {};
  header.len = sizeof(header) + sizeof(body);
  header.unique = request.unique;
  const iovec parts[] = {{&header, sizeof(header)}, {const_cast<Body*>(&body), sizeof(body)}};
  if (writev(fd, parts, 2) < 0) perror("answer");
}

void Refuse(int fd, const fuse_in_header& request) {
  fuse_out_header header = {};
  header.len = sizeof(header);
  header.error = -38;  // ENOSYS
  header.unique = request.unique;
  if (write(fd, &header, sizeof(header)) < 0) perror("refuse");
}

void Serve(int fd, const fuse_in_header& request, const void* body) {
  switch (request.opcode) {
    case FUSE_INIT: {
      fuse_init_out out = {};
      out.major = FUSE_KERNEL_VERSION;
      out.minor = static_cast<const fuse_init_in*>(body)->minor;
      out.max_write = 4096;
      return Answer(fd, request, out);
    }
    case FUSE_LOOKUP: {
      fuse_entry_out out = {};
      out.nodeid = kFile;
      out.attr = Attributes(kFile);
      return Answer(fd, request, out);
    }
    case FUSE_GETATTR: {
      fuse_attr_out out = {};
      out.attr = Attributes(request.nodeid);
      return Answer(fd, request, out);
    }
    case FUSE_OPEN:
      return Answer(fd, request, fuse_open_out());
    case FUSE_FLUSH:
      printf("ready\n");
      fflush(stdout);
      return;  // never answered
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
      return;
    default:
      return Refuse(fd, request);
  }
}

// In the child: the program that is never reached.
int Execute(const std::string& file, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (open(file.c_str(), O_RDONLY | O_CLOEXEC) < 0) return 77;
  execl("/bin/sleep", "sleep", "1000", nullptr);
  perror(argv[0]);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  const std::string options = "fd=" + std::to_string(fd) + ",rootmode=40000,user_id=0,group_id=0";
  if (fd < 0 || mount("stuck", argv[1], "fuse", 0, options.c_str()) != 0) return 77;
  if (fork() == 0) _exit(Execute(std::string(argv[1]) + "/file", argv));
  alignas(fuse_in_header) static char request[1 << 16];
  while (read(fd, request, sizeof(request)) > 0) {
    Serve(fd, *reinterpret_cast<fuse_in_header*>(request), request + sizeof(fuse_in_header));
  }
}
