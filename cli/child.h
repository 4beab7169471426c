// SPDX-License-Identifier: Apache-2.0
// The job that `rollcall run` runs: starting it, passing signals on, ending it
// with all that it started.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace rollcall {

struct Spawned {
  pid_t pid = -1;
  int error = 0;  // errno, where there is no pid
};

// What the program that started this one has done with signals: nohup ignores some, a shell others.
struct InheritedSignals {
  sigset_t blocked, ignored;

  // Whether a program that is started with these may go on after that signal.
  bool MayGoOnAfter(int signal) const;
};

// To be called before this process changes any of them.
InheritedSignals ReadInheritedSignals();

// Starts `command` (found by PATH) with `environment` ("NAME=VALUE") and these signals.
Spawned Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
              const InheritedSignals& signals);

// What a shell gives: the exit code, or 128 and the signal.
int ToExitCode(int wait_status);

// 127 for a command that is not there, 126 for one that cannot be executed.
int ExitCodeOfSpawnError(int error);

// This process's descendants, also those whose parents have gone (it must be
// their subreaper). Those that end meanwhile may be in it.
std::vector<pid_t> Descendants();

void SignalAll(const std::vector<pid_t>& processes, int signal);

}  // namespace rollcall
