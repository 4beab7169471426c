// SPDX-License-Identifier: Apache-2.0
// Starts a victim program for a test and ends it with the test. These functions wait for a state of
// the victim, with a deadline, and never for a fixed time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rollcall {

class VictimProcess {
 public:
  // Starts a program below the victims' build folder. Returns when it has printed "ready".
  explicit VictimProcess(const std::string& program, const std::string& set = "blocked",
                         int more_threads = 0);
  // Starts any command.
  explicit VictimProcess(const std::vector<std::string>& command);
  ~VictimProcess();
  VictimProcess(const VictimProcess&) = delete;
  VictimProcess& operator=(const VictimProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Waits until the thread of this name is in `state`, and returns its id. -1 if it never was.
  pid_t WaitForThread(const std::string& name, char state) const;
  // Waits until all threads are in `state`.
  bool WaitForAll(char state) const;
  // Writes one line to the victim's stdin and returns the answer.
  std::string Ask();
  // The number of SIGUSR1 signals that the victim has handled.
  int SignalsHandled();

  // Kills and reaps the victim. The pid is free afterwards.
  void KillAndCollect();

 private:
  std::string ReadLine();

  pid_t pid_ = -1;
  int to_victim_ = -1;
  int from_victim_ = -1;
};

std::string VictimPath(const std::string& program);

}  // namespace rollcall
