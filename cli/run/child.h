// SPDX-License-Identifier: Apache-2.0
// Starts the job of `rollcall run`, passes signals on to it, and ends it with all
// processes that it started.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace rollcall {

struct Spawned {
  pid_t pid = -1;
  int error = 0;  // the errno if the command did not start, else 0
};

// The signal state that this process got from its parent. For example, nohup ignores SIGHUP.
struct InheritedSignals {
  sigset_t blocked, ignored;

  // Whether a program that inherits this state may survive `signal`.
  bool MayGoOnAfter(int signal) const;
};

// Call this before the process changes any signal.
InheritedSignals ReadInheritedSignals();

// Starts `command`, which PATH finds, with `environment` ("NAME=VALUE") and `signals`.
Spawned Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
              const InheritedSignals& signals);

// The exit code as a shell gives it: the process's own, or 128 plus the signal's number.
int ToExitCode(int wait_status);

// 127 if the command does not exist, 126 if the kernel cannot execute it.
int ExitCodeOfSpawnError(int error);

// The descendants of this process, which must be a subreaper: then the list includes processes
// whose parents have ended. The list may contain processes that have ended since.
std::vector<pid_t> OwnDescendants();

void SignalAll(const std::vector<pid_t>& processes, int signal);

}  // namespace rollcall
