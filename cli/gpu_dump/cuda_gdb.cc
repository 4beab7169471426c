// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_dump/cuda_gdb.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/pidfd.h"
#include "agent/processes/spawn.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"
#include "cli/gpu_dump/cuda_gdb_text.h"

namespace rollcall {
namespace {

constexpr char kProgram[] = "cuda-gdb";
constexpr const char* kUsualFolders[] = {"/usr/local/cuda/bin", "/opt/cuda/bin"};
constexpr char kShell[] = "/bin/sh";
constexpr int kLookEveryMs = 100;

bool IsProgram(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// A shell sets the limits, which then hold from the first instruction on, also for what the program
// starts itself. It writes files of its own in /tmp, out of the dump: they are as large at most.
std::vector<std::string> LimitedCommand(const std::string& program, const std::string& dump,
                                        const GdbLimits& limits) {
  const std::string script =
      absl::StrCat("ulimit -c 0; ulimit -f 1048576; ulimit -t ", limits.cpu_seconds, "; ulimit -v ",
                   limits.memory_kib, "; exec \"$0\" \"$@\" 2>&1");
  return {kShell, "-c", script, program, "-nx", "-batch",
          // No file of the job names a script that it runs, or a server that it asks.
          "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-ex",
          absl::StrCat("target cudacore ", dump), "-ex", "info cuda kernels", "-ex",
          "info cuda threads kernel all"};
}

// The child, from its start to its end or to the limit.
class Debugger {
 public:
  explicit Debugger(GdbOutput* output) : output_(output) {}
  ~Debugger() {
    if (pid_ == 0 || CollectChild(pid_)) return;
    kill(-pid_, SIGKILL);  // its group: what it has started, too
    KillChild(pid_, pidfd_);
    // A dead process is soon gone; one inside a call of the kernel may stay.
    for (int i = 0; i < 10 && !CollectChild(pid_); ++i) usleep(kLookEveryMs * 100);
  }
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  // Returns 0 or an errno.
  int Start(const std::vector<std::string>& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    read_ = UniqueFd(ends[0]);
    const UniqueFd write(ends[1]);
    const int failure = SpawnApart(command[0], command, {-1, write.get()}, &pid_);
    if (failure != 0) return failure;
    const auto handle = OpenPidfd(pid_);
    if (handle.ok()) pidfd_ = UniqueFd(*handle);
    fcntl(read_.get(), F_SETFL, O_NONBLOCK);
    return 0;
  }

  // True if it has printed all.
  bool Read() {
    pollfd wait = {read_.get(), POLLIN, 0};
    poll(&wait, 1, kLookEveryMs);
    char buffer[16384];
    while (output_->text.size() < kMostGdbText) {
      const ssize_t size = read(read_.get(), buffer, sizeof(buffer));
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (size <= 0) return true;
      output_->text.append(buffer, static_cast<size_t>(size));
    }
    output_->problem = absl::StrCat("it printed more than ", kMostGdbText >> 20, " MiB");
    return true;
  }

 private:
  GdbOutput* const output_;
  pid_t pid_ = 0;
  UniqueFd pidfd_, read_;
};

}  // namespace

std::string FindCudaGdb(const char* path) {
  std::vector<std::string> folders;
  if (path != nullptr) folders = absl::StrSplit(path, ':');
  folders.insert(folders.end(), std::begin(kUsualFolders), std::end(kUsualFolders));
  for (const std::string& folder : folders) {
    const std::string program = absl::StrCat(folder, "/", kProgram);
    if (absl::StartsWith(folder, "/") && IsProgram(program)) return program;
  }
  return "";
}

GdbOutput RunCudaGdb(const std::string& program, const std::string& dump, const GdbLimits& limits,
                     const std::atomic<bool>& is_stopping) {
  GdbOutput output;
  Debugger debugger(&output);
  const int failure = debugger.Start(LimitedCommand(program, dump, limits));
  if (failure != 0) {
    output.problem = absl::StrCat("cannot start ", program, ": ", SpawnErrorInWords(failure));
    return output;
  }
  const int64_t until_ns = MonotonicNs() + limits.within_ns;
  while (!debugger.Read()) {
    if (is_stopping) {
      output.problem = "the run ended first";
      return output;
    }
    if (MonotonicNs() >= until_ns) {
      output.problem = absl::StrCat("it did not end within ", limits.within_ns / kSecond, " s");
      return output;
    }
  }
  return output;
}

}  // namespace rollcall
