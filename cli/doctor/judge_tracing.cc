// SPDX-License-Identifier: Apache-2.0
// Whether agents may take stacks from outside, what forbids it, and what they see of processes and
// kernel.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/doctor/checks.h"

namespace rollcall::doctor {
namespace {

constexpr char kAllowTracing[] =
    "docker run --cap-add=SYS_PTRACE ...   (Kubernetes: securityContext.capabilities.add: "
    "[SYS_PTRACE])";

bool IsRefused(const TracingFacts& tracing) { return tracing.of_child == Attempt::kFailed; }

// TraceRefusedMessage() gives the reason in its first line, after the process, and then what to
// type.
std::string TracingReasonOf(const TracingFacts& tracing) {
  std::string line = tracing.reason.substr(0, tracing.reason.find('\n'));
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

std::string AdviceOf(const TracingFacts& tracing) {
  const size_t end = tracing.reason.find('\n');
  if (end == std::string::npos) return kAllowTracing;
  std::string advice(absl::StripAsciiWhitespace(tracing.reason.substr(end)));
  return absl::StrReplaceAll(advice, {{"\n  ", "   or   "}});
}

}  // namespace

Judgement JudgeTracing(const Facts& facts) {
  const TracingFacts& tracing = facts.tracing;
  if (tracing.of_child == Attempt::kNotMade || tracing.of_child == Attempt::kNoAnswer) {
    return {State::kWarning, "could not try to trace a process of this user",
            "rollcall stacks $$   shows whether it works"};
  }
  if (IsRefused(tracing)) {
    return {State::kProblem,
            absl::StrCat("no process may be traced: ", TracingReasonOf(tracing),
                         ". Stacks come from inside then, without Python's frames"),
            AdviceOf(tracing)};
  }
  if (tracing.of_other == Attempt::kFailed) {
    return {State::kWarning,
            absl::StrCat(
                "`rollcall run` may trace its own job; an agent of this user may not trace a job "
                "that it did not start: ",
                TracingReasonOf(tracing)),
            AdviceOf(tracing)};
  }
  return {State::kOk, "stacks of this user's processes can be taken from outside", ""};
}

Judgement JudgeYama(const Facts& facts) {
  const int scope = facts.tracing.ptrace_scope;
  const std::string what = absl::StrCat("kernel.yama.ptrace_scope is ", scope);
  if (scope < 0) return {State::kNotApplicable, "this kernel has no Yama", ""};
  if (scope == 0)
    return {State::kOk, absl::StrCat(what, ": processes of one user may trace each other"), ""};
  if (facts.agent.may_see_all && scope < 3) {
    return {State::kOk, absl::StrCat(what, "; this user has CAP_SYS_PTRACE, which suffices"), ""};
  }
  if (scope == 1) {
    return {State::kOk,
            absl::StrCat(what,
                         ": `rollcall run` may trace its own job; the host's agent needs "
                         "CAP_SYS_PTRACE, which its unit gives"),
            ""};
  }
  if (scope == 2) {
    return {State::kProblem, absl::StrCat(what, ": only CAP_SYS_PTRACE may trace"),
            "sudo sysctl kernel.yama.ptrace_scope=1   or run the agent with CAP_SYS_PTRACE"};
  }
  return {State::kProblem, absl::StrCat(what, ": no process may trace until the next boot"),
          "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d, and boot again"};
}

Judgement JudgeSeccomp(const Facts& facts) {
  if (facts.tracing.seccomp == 0) return {State::kOk, "no seccomp filter is active", ""};
  if (facts.tracing.seccomp == 2 && IsRefused(facts.tracing) && facts.tracing.ptrace_scope < 2) {
    return {State::kProblem, "a seccomp filter is active, and tracing is refused",
            "docker run --cap-add=SYS_PTRACE --security-opt seccomp=unconfined ...   (Kubernetes: "
            "securityContext.seccompProfile.type: Unconfined)"};
  }
  return {State::kOk, "a seccomp filter is active and does not block tracing", ""};
}

Judgement JudgeSecurityModule(const Facts& facts) {
  const TracingFacts& tracing = facts.tracing;
  if (tracing.selinux_denies) {
    return {State::kProblem, "SELinux forbids to trace any process (deny_ptrace is on)",
            "sudo setsebool -P deny_ptrace off"};
  }
  if (tracing.profile.empty()) {
    return {State::kOk, "neither AppArmor nor SELinux forbids to trace", ""};
  }
  const bool is_enforced = absl::StrContains(tracing.profile, "(enforce)");
  if (is_enforced && IsRefused(tracing) && tracing.ptrace_scope < 2) {
    return {
        State::kProblem,
        absl::StrCat("AppArmor's profile ", tracing.profile, " is active, and tracing is refused"),
        "docker run --security-opt apparmor=unconfined ...   or add `ptrace,` to the profile"};
  }
  return {State::kOk,
          absl::StrCat("AppArmor's profile ", tracing.profile, " does not block tracing"), ""};
}

Judgement JudgePidNamespace(const Facts& facts) {
  const ContainerFacts& container = facts.container;
  if (!container.has_proc) {
    return {State::kProblem, "/proc is not mounted: neither agent nor doctor sees a process",
            "mount -t proc proc /proc"};
  }
  if (container.is_foreign_proc) {
    return {State::kProblem,
            "/proc shows the processes of another pid namespace: an agent here would take others "
            "for the "
            "job's",
            "mount -t proc proc /proc   or   unshare --pid --fork --mount-proc ..."};
  }
  if (!container.has_own_pids) {
    return {State::kOk, "the host's own pid namespace: an agent here sees every process", ""};
  }
  return {State::kOk,
          absl::StrCat(
              "a pid namespace of its own",
              container.kind.empty() ? "" : absl::StrCat(" (", container.kind, ")"),
              ": an agent here sees this container only; the host's agent sees both, and names "
              "the host's pids"),
          ""};
}

Judgement JudgeKernelLog(const Facts& facts) {
  if (facts.kernel.kernel_log == Attempt::kWorked) {
    return {State::kOk,
            "the kernel's log is readable: Xid lines and killed processes become evidence", ""};
  }
  return {State::kWarning,
          "this user may not read the kernel's log: an agent of this user finds no Xid line and no "
          "killed "
          "process",
          "run the agent with CAP_SYSLOG   or   sudo sysctl kernel.dmesg_restrict=0"};
}

}  // namespace rollcall::doctor
