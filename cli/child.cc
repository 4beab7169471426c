#include "cli/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Those that it started and has not waited for. Nothing of the children themselves is read: that
// could block on one whose memory is locked in the kernel.
void AddChildren(pid_t parent, std::vector<pid_t>* children) {
  const std::string tasks = absl::StrCat("/proc/", parent, "/task");
  for (const pid_t tid : ListNumbers(tasks).value_or(std::vector<pid_t>())) {
    std::ifstream list(absl::StrCat(tasks, "/", tid, "/children"));
    for (pid_t child; list >> child;) children->push_back(child);
  }
}

}  // namespace

Spawned Spawn(const std::vector<std::string>& command,
              const std::vector<std::string>& environment) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  Spawned spawned;
  spawned.error = posix_spawnp(&spawned.pid, command.front().c_str(), nullptr, &attributes,
                               Pointers(command).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (spawned.error != 0) spawned.pid = -1;
  return spawned;
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int ExitCodeOfSpawnError(int error) { return error == ENOENT || error == ENOTDIR ? 127 : 126; }

std::vector<pid_t> Descendants() {
  std::vector<pid_t> found = {getpid()};
  for (size_t i = 0; i < found.size(); ++i) AddChildren(found[i], &found);
  found.erase(found.begin());
  return found;
}

void SignalAll(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t pid : processes) kill(pid, signal);
}

}  // namespace rollcall
