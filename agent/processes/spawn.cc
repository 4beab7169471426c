// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/mutex.h"

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
    // Also those that this process itself has inherited.
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

}  // namespace

int SpawnApart(const std::string& path, const std::vector<std::string>& arguments,
               const ChildFiles& files, pid_t* pid) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  char variable[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  char* environment[] = {variable, nullptr};
  const SpawnSettings settings(files);
  const int failure = posix_spawn(pid, path.c_str(), settings.actions(), settings.attributes(),
                                  argv.data(), environment);
  const MutexLock lock(AllApart().mutex);
  if (failure == 0) AllApart().pids.insert(*pid);
  return failure;
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
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  const std::string whole(path, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace rollcall
