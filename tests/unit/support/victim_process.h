// SPDX-License-Identifier: Apache-2.0
// Starts a victim program for a test and ends it with the test. Waiting here is for a state of the
// victim, with a deadline, never for time to pass.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rollcall {

class VictimProcess {
 public:
  // A program below the victims' build folder; returns once it has said "ready".
  explicit VictimProcess(const std::string& program, const std::string& set = "blocked",
                         int more_threads = 0);
  // Any command.
  explicit VictimProcess(const std::vector<std::string>& command);
  ~VictimProcess();
  VictimProcess(const VictimProcess&) = delete;
  VictimProcess& operator=(const VictimProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The thread of this name, once it is in `state`. -1 if that does not come about.
  pid_t WaitForThread(const std::string& name, char state) const;
  // All threads are in `state`.
  bool WaitForAll(char state) const;
  // What it says to one line on its stdin.
  std::string Ask();
  // How many SIGUSR1 it has handled.
  int SignalsHandled();

  // Kills it and collects it; the pid is free afterwards.
  void KillAndCollect();

 private:
  std::string ReadLine();

  pid_t pid_ = -1;
  int to_victim_ = -1;
  int from_victim_ = -1;
};

std::string VictimPath(const std::string& program);

}  // namespace rollcall
