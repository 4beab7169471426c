// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/trace_refused.h"
#include "cli/doctor/probes.h"

namespace rollcall::doctor {
namespace {

// A process of this user that waits, and is killed at the end.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Waiting() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

Attempt Seize(pid_t pid) {
  return ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? Attempt::kWorked : Attempt::kFailed;
}

// Yama lets an ancestor trace. A sibling of the process is not an ancestor, nor is an agent of the
// host.
Attempt SeizeAsSibling(pid_t pid) {
  const pid_t sibling = fork();
  if (sibling < 0) return Attempt::kNotMade;
  if (sibling == 0) _exit(Seize(pid) == Attempt::kWorked ? 0 : 1);
  int status = 0;
  if (waitpid(sibling, &status, 0) != sibling || !WIFEXITED(status)) return Attempt::kNotMade;
  return WEXITSTATUS(status) == 0 ? Attempt::kWorked : Attempt::kFailed;
}

std::string ReadProfile(const HostFiles& files) {
  for (const char* path : {"/proc/self/attr/apparmor/current", "/proc/self/attr/current"}) {
    std::string profile = files.Read(path).value_or("");
    // SELinux writes its context into the second file, with colons.
    if (profile.empty() || profile == "unconfined" || profile.find(':') != std::string::npos)
      continue;
    while (!profile.empty() && profile.back() == '\0') profile.pop_back();
    return profile == "unconfined" ? "" : profile;
  }
  return "";
}

bool SelinuxDenies(const HostFiles& files) {
  // The second number is the value that waits for a commit.
  return files.Number("/sys/fs/selinux/enforce").value_or(0) == 1 &&
         files.Number("/sys/fs/selinux/booleans/deny_ptrace").value_or(0) == 1;
}

}  // namespace

TracingFacts ProbeTracing(const HostFiles& files) {
  TracingFacts facts;
  facts.ptrace_scope =
      static_cast<int>(files.Number("/proc/sys/kernel/yama/ptrace_scope").value_or(-1));
  facts.seccomp = static_cast<int>(files.Number("/proc/self/status", "Seccomp:").value_or(0));
  facts.profile = ReadProfile(files);
  facts.selinux_denies = SelinuxDenies(files);
  const Waiting process;
  if (process.pid() <= 0) return facts;
  facts.of_other = SeizeAsSibling(process.pid());
  if (facts.of_other != Attempt::kWorked) {
    facts.reason = TraceRefusedMessage(files.Path("/proc"), process.pid());
  }
  facts.of_child = Seize(process.pid());
  return facts;
}

}  // namespace rollcall::doctor
