// SPDX-License-Identifier: Apache-2.0
// A file system with one file. Its server can stop answering, like a dead NFS server.
// The server is a process of its own. It stops at the first request of the kind that the test
// names.
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

namespace rollcall {

class FileServer {
 public:
  // Only this thread and the threads that it starts see the mount.
  FileServer(const std::string& folder, std::string name, std::vector<char> bytes)
      : folder_(folder), name_(std::move(name)), bytes_(std::move(bytes)) {
    void* shared = mmap(nullptr, sizeof(*stops_at_), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stops_at_ = new (shared) std::atomic<uint32_t>(0);
    std::filesystem::create_directories(folder);
    fd_ = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options =
        "fd=" + std::to_string(fd_) + ",rootmode=40000,user_id=0,group_id=0";
    if (fd_ < 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("served", folder.c_str(), "fuse", 0, options.c_str()) != 0) {
      problem_ = std::string("no FUSE mounts are permitted here: ") + strerror(errno);
      return;
    }
    server_ = fork();
    if (server_ == 0) Serve();
    close(fd_);
    fd_ = -1;
  }
  ~FileServer() {
    Kill();
    if (fd_ >= 0) close(fd_);
    umount2(folder_.c_str(), MNT_DETACH);
    munmap(stops_at_, sizeof(*stops_at_));
  }
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  const std::string& problem() const { return problem_; }  // may be empty

  // `opcode`: one of FUSE's. If the folder has such requests, too, only those of the file count.
  void StopAt(uint32_t opcode) const { *stops_at_ = opcode; }
  bool IsThere() const { return server_ > 0; }

  // Whether the server has reached the request at which it stops answering.
  bool HasStopped() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(server_), &info, WSTOPPED | WNOWAIT | WNOHANG) == 0 &&
           info.si_pid == server_;
  }
  void GoOn() const {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(server_), &info, WSTOPPED | WNOHANG);
    kill(server_, SIGCONT);
  }
  // Processes that wait for the server get an error.
  void Kill() {
    if (server_ <= 0) return;
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
    server_ = -1;
  }

 private:
  static constexpr uint64_t kFile = 2;

  [[noreturn]] void Serve() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alignas(fuse_in_header) static char request[1 << 17];
    while (true) {
      const ssize_t size = read(fd_, request, sizeof(request));
      if (size < 0 && (errno == EINTR || errno == ENOENT)) continue;
      if (size <= 0) _exit(0);
      Answer(*reinterpret_cast<fuse_in_header*>(request), request + sizeof(fuse_in_header));
    }
  }

  fuse_attr Attributes(uint64_t node) const {
    fuse_attr attr = {};
    attr.ino = node;
    attr.size = node == kFile ? bytes_.size() : 0;
    attr.mode = node == kFile ? S_IFREG | 0700 : S_IFDIR | 0700;
    attr.nlink = 1;
    return attr;
  }

  void Reply(const fuse_in_header& request, int error, const void* body, size_t size) const {
    fuse_out_header header = {};
    header.len = static_cast<uint32_t>(sizeof(header) + size);
    header.error = -error;
    header.unique = request.unique;
    const iovec parts[] = {{&header, sizeof(header)}, {const_cast<void*>(body), size}};
    if (writev(fd_, parts, 2) < 0 && errno != ENOENT) _exit(1);
  }
  template <typename Body>
  void Reply(const fuse_in_header& request, const Body& body) const {
    Reply(request, 0, &body, sizeof(body));
  }

  void ReplyEntries(const fuse_in_header& request, const fuse_read_in& wanted) const {
    alignas(fuse_dirent) char bytes[FUSE_NAME_OFFSET + 256] = {};
    auto* entry = reinterpret_cast<fuse_dirent*>(bytes);
    entry->ino = kFile;
    entry->off = 1;
    entry->type = DT_REG;
    entry->namelen = static_cast<uint32_t>(name_.size());
    memcpy(entry->name, name_.data(), name_.size());
    Reply(request, 0, bytes, wanted.offset == 0 && !deleted_ ? FUSE_DIRENT_SIZE(entry) : 0);
  }

  void Answer(const fuse_in_header& request, const char* body) {
    const bool of_folder = request.opcode == FUSE_GETATTR && request.nodeid != kFile;
    if (request.opcode == *stops_at_ && !of_folder) {
      *stops_at_ = 0;
      raise(SIGSTOP);
    }
    switch (request.opcode) {
      case FUSE_INIT: {
        fuse_init_out out = {};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = reinterpret_cast<const fuse_init_in*>(body)->minor;
        out.max_write = 4096;
        return Reply(request, out);
      }
      case FUSE_LOOKUP: {
        if (deleted_ || name_ != body) return Reply(request, ENOENT, nullptr, 0);
        fuse_entry_out out = {};
        out.nodeid = kFile;
        out.attr = Attributes(kFile);
        return Reply(request, out);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out = {};
        out.attr = Attributes(request.nodeid);
        return Reply(request, out);
      }
      case FUSE_OPEN:
      case FUSE_OPENDIR: {
        fuse_open_out out = {};
        out.open_flags = FOPEN_DIRECT_IO;
        return Reply(request, out);
      }
      case FUSE_READDIR:
        return ReplyEntries(request, *reinterpret_cast<const fuse_read_in*>(body));
      case FUSE_READ: {
        const auto& wanted = *reinterpret_cast<const fuse_read_in*>(body);
        const size_t from = std::min<size_t>(wanted.offset, bytes_.size());
        return Reply(request, 0, bytes_.data() + from,
                     std::min<size_t>(wanted.size, bytes_.size() - from));
      }
      case FUSE_UNLINK:
        deleted_ = true;
        return Reply(request, 0, nullptr, 0);
      case FUSE_FLUSH:
      case FUSE_RELEASE:
      case FUSE_RELEASEDIR:
        return Reply(request, 0, nullptr, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return Reply(request, ENOSYS, nullptr, 0);
    }
  }

  const std::string folder_, name_;
  const std::vector<char> bytes_;
  std::atomic<uint32_t>* stops_at_ = nullptr;  // a FUSE opcode; shared with the server
  bool deleted_ = false;
  int fd_ = -1;
  pid_t server_ = -1;
  std::string problem_;
};

}  // namespace rollcall
