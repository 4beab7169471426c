// SPDX-License-Identifier: Apache-2.0
// The processes of the job of `rollcall run`: starts the command, passes signals on to it, gets its
// exit code, and ends it with all processes that it has started.
//
// One owner, one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/run/child.h"

struct signalfd_siginfo;

namespace rollcall {

class RunningJob {
 public:
  // Blocks the signals for all threads of this process. Create it before the first thread.
  RunningJob();

  // Returns 0, or the exit code if the command did not start. Prints the error.
  int Start(const std::vector<std::string>& command, const std::vector<std::string>& environment);

  // Waits for signals for `most_ms` at most, passes them on, and kills a job that has had its time.
  void Poll(int most_ms);

  // Asks all processes of the job to end. Poll() kills them later.
  void End();

  // After the end of the command. If the job was ended from outside, ends the processes that the
  // command has left behind. Otherwise, if the command has failed, waits a little for them: its
  // launcher ends them.
  void AwaitRest();

  const InheritedSignals& inherited() const { return inherited_; }
  bool has_started() const { return child_ > 0; }
  bool has_ended() const { return has_ended_; }
  int exit_code() const { return exit_code_; }
  // A signal asked it to end: by a person's Ctrl-C, a scheduler, or End().
  bool was_asked_to_end() const { return kill_at_ns_ != 0; }
  // The command has failed without such a signal.
  bool has_failed() const { return exit_code_ != 0 && !was_asked_to_end(); }

 private:
  void TakeSignals();
  void PassOn(const signalfd_siginfo& info);
  void Reap();
  void EndLingering();
  void AwaitRanks();

  const InheritedSignals inherited_;
  UniqueFd signals_;
  pid_t child_ = -1;
  bool has_ended_ = false;
  int exit_code_ = 0;
  int64_t kill_at_ns_ = 0;  // the time to kill a job that got a signal to end; 0 if it got none
};

}  // namespace rollcall
