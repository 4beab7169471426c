// SPDX-License-Identifier: Apache-2.0
#include "cli/run/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/spawn.h"

namespace rollcall {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Appends the children that `parent` has started and not waited for. This reads files of the
// parent only: a read from a child whose memory is locked in the kernel could block.
void AddChildren(pid_t parent, std::vector<pid_t>* children) {
  const std::string tasks = absl::StrCat("/proc/", parent, "/task");
  for (const pid_t tid : ListNumbers(tasks).value_or(std::vector<pid_t>())) {
    std::ifstream list(absl::StrCat(tasks, "/", tid, "/children"));
    for (pid_t child; list >> child;) children->push_back(child);
  }
}

// Runs in the child of vfork(). The child shares this process's memory until execvpe(), so this
// function allocates nothing.
[[noreturn]] void Become(char* const* command, char* const* environment,
                         const InheritedSignals& signals, volatile int* error) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    action.sa_handler = sigismember(&signals.ignored, number) == 1 ? SIG_IGN : SIG_DFL;
    sigaction(number, &action, nullptr);  // the kernel refuses SIGKILL and SIGSTOP
  }
  sigprocmask(SIG_SETMASK, &signals.blocked, nullptr);
  execvpe(command[0], command, environment);
  *error = errno;
  _exit(127);
}

}  // namespace

bool InheritedSignals::MayGoOnAfter(int signal) const {
  return sigismember(&ignored, signal) == 1 || sigismember(&blocked, signal) == 1;
}

InheritedSignals ReadInheritedSignals() {
  InheritedSignals signals;
  pthread_sigmask(SIG_SETMASK, nullptr, &signals.blocked);
  sigemptyset(&signals.ignored);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now;
    const bool ignored = sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (ignored) sigaddset(&signals.ignored, number);
  }
  return signals;
}

// Does not use posix_spawn(): that function cannot ignore a signal in the program that this process
// does not ignore, and it leaves two signals of glibc ignored.
Spawned Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
              const InheritedSignals& signals) {
  const std::vector<char*> arguments = Pointers(command), variables = Pointers(environment);
  volatile int error = 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // so that no handler runs in the child
  const pid_t pid = vfork();
  if (pid == 0) Become(arguments.data(), variables.data(), signals, &error);
  if (pid < 0) error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) return {pid, 0};
  if (pid > 0) waitpid(pid, nullptr, 0);
  return {-1, error};
}

int ToExitCode(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int ExitCodeOfSpawnError(int error) { return error == ENOENT || error == ENOTDIR ? 127 : 126; }

std::vector<pid_t> OwnDescendants() {
  std::vector<pid_t> found = {getpid()};
  for (size_t i = 0; i < found.size(); ++i) AddChildren(found[i], &found);
  found.erase(found.begin());
  found.erase(std::remove_if(found.begin(), found.end(), IsApart), found.end());
  return found;
}

void SignalAll(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t pid : processes) kill(pid, signal);
}

}  // namespace rollcall
