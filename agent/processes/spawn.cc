// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "base/monotonic_clock.h"
#include "base/mutex.h"
#include "base/read_file.h"
#include "base/worker.h"

namespace rollcall {
namespace {

constexpr int kExtra = STDERR_FILENO + 1;

struct Apart {
  Mutex mutex;
  std::set<pid_t> pids ABSL_GUARDED_BY(mutex);
};

// Never destroyed: loose threads may start programs at the end of this one.
Apart& AllApart() {
  static Apart& all = *new Apart;
  return all;
}

class SpawnSettings {
 public:
  explicit SpawnSettings(const ChildFiles& files) {
    posix_spawn_file_actions_init(&actions_);
    Give(files.input, STDIN_FILENO, O_RDONLY);
    Give(files.output, STDOUT_FILENO, O_WRONLY);
    Give(-1, STDERR_FILENO, O_WRONLY);
    if (files.extra >= 0) posix_spawn_file_actions_adddup2(&actions_, files.extra, kExtra);
    // Closes also those that this process itself has inherited.
    posix_spawn_file_actions_addclosefrom_np(&actions_, files.extra >= 0 ? kExtra + 1 : kExtra);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  void Give(int fd, int as, int mode) {
    if (fd < 0) {
      posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", mode, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, fd, as);
    }
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A process that starts a program waits until the kernel has read its file.
constexpr int64_t kStartWithinNs = 2'000'000'000;
std::atomic<bool> is_stuck{false};  // a start has not returned in time, nor since

// The start of a program, on a thread of its own. Owns all that it uses.
class Start {
 public:
  Start(std::string path, std::vector<std::string> arguments, const ChildFiles& files)
      : path_(std::move(path)),
        arguments_(std::move(arguments)),
        input_(Copy(files.input)),
        output_(Copy(files.output)),
        extra_(Copy(files.extra)) {}

  // Returns when the program has ended. A program may ask to end with its parent, and for the
  // kernel its parent is the thread that started it (PR_SET_PDEATHSIG).
  void Run() {
    pid_t pid = 0;
    const int failure = Spawn(&pid);
    input_ = UniqueFd();
    output_ = UniqueFd();
    extra_ = UniqueFd();
    if (!Tell(failure, pid)) return;
    siginfo_t end = {};
    while (waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }

  // ETIMEDOUT: it has not begun in time, and no caller wants it any more.
  int Await(int64_t within_ns, pid_t* pid) {
    const int64_t until_ns = MonotonicNs() + within_ns;
    const MutexLock lock(mutex_);
    while (!is_over_) {
      const int64_t left_ns = until_ns - MonotonicNs();
      is_left_ = left_ns <= 0;
      if (is_left_) {
        is_stuck.store(true);
        return ETIMEDOUT;
      }
      over_.WaitFor(mutex_, std::chrono::nanoseconds(left_ns));
    }
    if (failure_ == 0) *pid = pid_;
    return failure_;
  }

 private:
  // -1 stays -1.
  static int Copy(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, kExtra + 1); }

  int Spawn(pid_t* pid) {
    std::vector<char*> argv;
    for (std::string& argument : arguments_) argv.push_back(argument.data());
    argv.push_back(nullptr);
    char variable[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    char* environment[] = {variable, nullptr};
    const SpawnSettings settings({input_.get(), output_.get(), extra_.get()});
    return posix_spawn(pid, path_.c_str(), settings.actions(), settings.attributes(), argv.data(),
                       environment);
  }

  // False if there is no program.
  bool Tell(int failure, pid_t pid) {
    const MutexLock lock(mutex_);
    is_over_ = true;
    failure_ = failure;
    pid_ = pid;
    over_.NotifyAll();
    if (is_left_ && failure == 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (is_left_) is_stuck.store(false);
    return failure == 0 && !is_left_;
  }

  const std::string path_;
  std::vector<std::string> arguments_;
  UniqueFd input_, output_, extra_;
  Mutex mutex_;
  Condition over_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_left_ ABSL_GUARDED_BY(mutex_) = false;
  int failure_ ABSL_GUARDED_BY(mutex_) = 0;
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

int SpawnApart(const std::string& path, const std::vector<std::string>& arguments,
               const ChildFiles& files, pid_t* pid) {
  if (is_stuck.load()) return ETIMEDOUT;
  const auto start = std::make_shared<Start>(path, arguments, files);
  Worker thread;
  if (!thread.Post([start] { start->Run(); })) return EAGAIN;  // the host has no thread left
  const int failure = start->Await(kStartWithinNs, pid);
  thread.Finish(SteadyTime());  // leaves it behind
  const MutexLock lock(AllApart().mutex);
  if (failure == 0) AllApart().pids.insert(*pid);
  return failure;
}

std::string SpawnErrorInWords(int error) {
  return error == ETIMEDOUT ? "its file server does not answer" : strerror(error);
}

bool IsApart(pid_t pid) {
  const MutexLock lock(AllApart().mutex);
  return AllApart().pids.count(pid) != 0;
}

void KillChild(pid_t pid, const UniqueFd& pidfd) {
  if (pidfd.valid()) {
    syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  } else if (waitpid(pid, nullptr, WNOHANG) == 0) {
    kill(pid, SIGKILL);
  }
}

bool CollectChild(pid_t pid) {
  const pid_t found = waitpid(pid, nullptr, WNOHANG);
  const bool has_ended = found == pid || (found < 0 && errno == ECHILD);
  if (!has_ended) return false;
  const MutexLock lock(AllApart().mutex);
  AllApart().pids.erase(pid);
  return true;
}

std::string OwnProgramFolder() {
  const std::string whole = ReadLink("/proc/self/exe");
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace rollcall
