#include "cli/child.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "agent/proc_evidence.h"

namespace rollcall {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return pids;
  while (const dirent* entry = readdir(dir)) {
    const int pid = atoi(entry->d_name);
    if (pid > 0) pids.push_back(pid);
  }
  closedir(dir);
  return pids;
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
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : AllProcesses()) {
    const auto stat = ReadProcStat("/proc", pid);
    if (stat.ok() && stat->state != 'Z') children.emplace(stat->ppid, pid);
  }
  std::vector<pid_t> found = {getpid()};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto at = begin; at != end; ++at) found.push_back(at->second);
  }
  found.erase(found.begin());
  return found;
}

void SignalAll(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t pid : processes) kill(pid, signal);
}

}  // namespace rollcall
