// SPDX-License-Identifier: Apache-2.0
#include "victim_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "agent/processes/proc_stat.h"
#include "eventually.h"

namespace rollcall {
namespace {

// Looks without a pause: some states last for less than that.
bool SoonHolds(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    sched_yield();
  }
  return true;
}

}  // namespace

std::string VictimPath(const std::string& program) {
  return std::string(ROLLCALL_VICTIM_DIR) + "/" + program;
}

VictimProcess::VictimProcess(const std::string& program, const std::string& set, int more_threads)
    : VictimProcess({VictimPath(program), set, std::to_string(more_threads)}) {}

VictimProcess::VictimProcess(const std::vector<std::string>& command) {
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) {
    std::abort();
  }
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_victim_ = to[1];
  from_victim_ = from[0];
  if (ReadLine() != "ready") std::abort();
}

VictimProcess::~VictimProcess() {
  KillAndCollect();
  close(to_victim_);
  close(from_victim_);
}

std::string VictimProcess::ReadLine() {
  std::string line;
  char byte;
  while (read(from_victim_, &byte, 1) == 1 && byte != '\n') line += byte;
  return line;
}

pid_t VictimProcess::WaitForThread(const std::string& name, char state) const {
  pid_t found = -1;
  SoonHolds([&] {
    const auto evidence = ReadProcThreads("/proc", pid_);
    if (!evidence.ok()) return true;
    for (const ProcThread& thread : evidence->threads) {
      if (thread.name == name && thread.state == state) found = thread.tid;
    }
    return found != -1;
  });
  return found;
}

bool VictimProcess::WaitForAll(char state) const {
  return SoonHolds([&] {
    const auto evidence = ReadProcThreads("/proc", pid_);
    return evidence.ok() &&
           std::all_of(evidence->threads.begin(), evidence->threads.end(),
                       [state](const ProcThread& thread) { return thread.state == state; });
  });
}

std::string VictimProcess::Ask() {
  if (write(to_victim_, "c\n", 2) != 2) return "it cannot be asked";
  return ReadLine();
}

int VictimProcess::SignalsHandled() {
  if (write(to_victim_, "c", 1) != 1) return -1;
  return std::atoi(ReadLine().c_str());
}

void VictimProcess::KillAndCollect() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace rollcall
